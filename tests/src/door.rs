//! Doors to a worker that asks for keys: whoever comes through one has its key. So clients that know nothing of keys and encryption can be
//! sessions of a tenant.

use hipr_tls::{ClientChannel, ClientIdentity, Expected, SecretKey};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// Bytes that are carried at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Listens for clients without keys, each of which becomes one of the worker's that has this key, as long as this process lives; returns
/// the address.
///
/// # Errors
/// Those of the system; the key cannot be used.
pub fn open_door(worker: SocketAddr, key: &SecretKey) -> io::Result<SocketAddr> {
    let identity = ClientIdentity::new(key).map_err(io::Error::other)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let identity = identity.clone();
            thread::spawn(move || carry(&client, worker, &identity));
        }
    });
    Ok(address)
}

/// Carries bytes both ways until an end closes its side, or the worker refuses the key; then both connections end.
fn carry(client: &TcpStream, worker: SocketAddr, identity: &ClientIdentity) -> io::Result<()> {
    let sealed = TcpStream::connect(worker)?;
    [client, &sealed].into_iter().try_for_each(|socket| socket.set_nodelay(true))?;
    let channel = ClientChannel::new(identity, Expected::Any, None).map_err(io::Error::other)?;
    let channel = Mutex::new(channel);
    let end = || [client, &sealed].into_iter().for_each(|socket| drop(socket.shutdown(Shutdown::Both)));
    thread::scope(|scope| {
        // What is sent before the worker has let the client in would be part of the handshake.
        let begin = || {
            scope.spawn(|| {
                let _ended = encrypt(&channel, client, &sealed);
                end();
            });
        };
        let _ended = decrypt(&channel, &sealed, client, begin);
        end();
    });
    Ok(())
}

fn lock(channel: &Mutex<ClientChannel>) -> MutexGuard<'_, ClientChannel> {
    channel.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes on what the worker sends; calls `is_in` when it has let the client in.
fn decrypt(
    channel: &Mutex<ClientChannel>,
    mut sealed: &TcpStream,
    mut client: &TcpStream,
    is_in: impl FnOnce(),
) -> io::Result<()> {
    let (mut bytes, mut plain, mut output) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES], Vec::new());
    let mut is_in = Some(is_in);
    loop {
        if is_in.is_some() {
            lock(channel).channel().take_output(&mut output);
            sealed.write_all(&output)?;
            output.clear();
        }
        let len = sealed.read(&mut bytes)?;
        let mut input = &bytes[..len];
        loop {
            let len = lock(channel).receive(&mut input, &mut plain).map_err(io::Error::other)?;
            client.write_all(&plain[..len])?;
            if len == 0 && input.is_empty() {
                break;
            }
        }
        if len == 0 {
            return Ok(());
        }
        if lock(channel).is_in()
            && let Some(is_in) = is_in.take()
        {
            is_in();
        }
    }
}

/// Passes on what the client sends.
fn encrypt(channel: &Mutex<ClientChannel>, mut client: &TcpStream, mut sealed: &TcpStream) -> io::Result<()> {
    let (mut bytes, mut output) = (vec![0; PIECE_BYTES], Vec::new());
    loop {
        let len = client.read(&mut bytes)?;
        if len == 0 {
            return Ok(());
        }
        let mut locked = lock(channel);
        locked.channel().send(&[IoSlice::new(&bytes[..len])]);
        locked.channel().take_output(&mut output);
        drop(locked);
        sealed.write_all(&output)?;
        output.clear();
    }
}
