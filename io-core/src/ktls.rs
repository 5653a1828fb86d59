//! Encryption of what a TCP socket sends by the kernel (kTLS, Linux's `tls` module), with a key that the channel lends.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use hipr_tls::{LentCipher, LentKey};
use nix::libc;
use nix::sys::socket::{SetSockOpt, sockopt};
use socket2::{MsgHdr, SockRef};

/// The version of the records: TLS 1.3.
const VERSION: u16 = 0x0304;
/// Kinds of ciphers in `linux/tls.h`.
const AES_GCM_128: u16 = 51;
const AES_GCM_256: u16 = 52;
const CHACHA20_POLY1305: u16 = 54;
/// The control message of `linux/tls.h` that says of which type the next record is, and the type of an alert.
const SET_RECORD_TYPE: libc::c_int = 1;
const ALERT: u8 = 21;

/// Has the kernel encrypt what is sent over a socket from now on.
///
/// # Errors
/// It does not, and the socket stays as it was: [`NotFound`](io::ErrorKind::NotFound) if the kernel has no `tls` module, or it is not loaded.
pub(crate) fn give(socket: impl AsFd, key: &LentKey) -> io::Result<()> {
    sockopt::TcpUlp::default().set(&socket, b"tls")?;
    Ok(sockopt::TcpTlsTx.set(&socket, &crypto_info(key))?)
}

/// Returns the key as the kernel reads it. It divides the nonce of AES-GCM as TLS 1.2 does: 4 bytes of salt, and 8 more.
fn crypto_info(key: &LentKey) -> sockopt::TlsCryptoInfo {
    let info = |cipher_type| libc::tls_crypto_info { version: VERSION, cipher_type };
    let [a, b, c, d, iv @ ..] = key.iv;
    let (salt, rec_seq) = ([a, b, c, d], key.record.to_be_bytes());
    match key.cipher {
        LentCipher::Aes128Gcm(key) => {
            let info = info(AES_GCM_128);
            sockopt::TlsCryptoInfo::Aes128Gcm(libc::tls12_crypto_info_aes_gcm_128 {
                info,
                iv,
                key,
                salt,
                rec_seq,
            })
        }
        LentCipher::Aes256Gcm(key) => {
            let info = info(AES_GCM_256);
            sockopt::TlsCryptoInfo::Aes256Gcm(libc::tls12_crypto_info_aes_gcm_256 {
                info,
                iv,
                key,
                salt,
                rec_seq,
            })
        }
        LentCipher::ChaCha20Poly1305(secret) => {
            let (info, salt) = (info(CHACHA20_POLY1305), []);
            let info =
                libc::tls12_crypto_info_chacha20_poly1305 { info, iv: key.iv, key: secret, salt, rec_seq };
            sockopt::TlsCryptoInfo::Chacha20Poly1305(info)
        }
    }
}

/// Sends an alert over a socket that the kernel encrypts, without waiting.
///
/// # Errors
/// The socket's; [`WouldBlock`](io::ErrorKind::WouldBlock) if it has no room now.
pub fn send_alert(socket: &impl AsFd, alert: [u8; 2]) -> io::Result<()> {
    let control = record_type(ALERT);
    let bytes = [IoSlice::new(&alert)];
    let message = MsgHdr::new().with_buffers(&bytes).with_control(&control);
    SockRef::from(socket).sendmsg(&message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT).map(drop)
}

/// Returns the control message (cmsg(3)) with the type of a record.
fn record_type(kind: u8) -> Vec<u8> {
    let head = size_of::<usize>() + 2 * size_of::<libc::c_int>();
    let mut message = Vec::with_capacity(head + size_of::<usize>());
    message.extend_from_slice(&(head + 1).to_ne_bytes());
    message.extend_from_slice(&libc::SOL_TLS.to_ne_bytes());
    message.extend_from_slice(&SET_RECORD_TYPE.to_ne_bytes());
    message.push(kind);
    message.resize(message.len().next_multiple_of(size_of::<usize>()), 0);
    message
}
