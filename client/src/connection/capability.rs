//! Copies between workers: a connection of one worker to another, which reads what a session there has given a capability for.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use hipr_io::Address;
use hipr_proto::op::{
    CAPABILITY_ADDRESS_MAX_BYTES, CAPABILITY_TIMEOUT_MAX_MS, CAPABILITY_TOKEN_BYTES, CapabilityCopy,
    CapabilityGive, CapabilityRead,
};
use hipr_proto::{Features, HipError};
use hipr_tls::{ClientChannel, ClientIdentity, Expected, Fingerprint, random_bytes};

use super::{ConnectOptions, Connection, Extra};
use crate::replies::Rows;
use crate::transport::{Secured, Transport, connect_tcp};
use crate::{CallError, ConnectError, WorkerAddress};

/// Bytes that are asked for at a time.
const PIECE_BYTES: usize = 2 << 20;
/// Number of pieces that are on their way.
const PIECES: usize = 4;
/// Longest time without a byte of those that were asked for.
const SILENCE: Duration = Duration::from_secs(30);

/// A capability to read memory of a session of another worker.
pub struct Capability<'a> {
    /// The other worker: HOST:PORT.
    pub host_and_port: &'a str,
    /// The fingerprint of its key, if it asks for keys.
    pub worker: Option<Fingerprint>,
    /// The token.
    pub token: [u8; CAPABILITY_TOKEN_BYTES],
    /// Number of bytes.
    pub len_bytes: u64,
}

/// Where another worker finds the worker of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// HOST:PORT.
    pub host_and_port: String,
    /// The fingerprint of the worker's key, if it asks for keys.
    pub worker: Option<Fingerprint>,
    /// Whether it is a loopback address, which on another machine is that machine.
    pub is_loopback: bool,
}

impl Connection {
    /// Connects to another worker to read what a session there has given a capability for, within `timeout`. This side shows the key of `identity`, which need
    /// not be authorized there.
    ///
    /// # Errors
    /// The worker cannot be reached, is not the expected one, or does not let this side in; it knows no capabilities.
    pub fn for_capability(
        capability: &Capability<'_>,
        identity: &ClientIdentity,
        timeout: Duration,
    ) -> Result<Self, ConnectError> {
        let connection = Self::connect_as(
            capability.host_and_port,
            capability.worker,
            identity,
            Some(capability.token),
            timeout,
        )?;
        if !connection.features().contains(Features::CAPABILITIES) {
            let (address, reason) = (connection.address().clone(), "it knows no capabilities".to_owned());
            return Err(ConnectError { address, reason });
        }
        Ok(connection)
    }

    /// Connects over TCP, within `timeout`, with a key that need not be in the user's folder, to a worker with this fingerprint; without
    /// encryption, and then without the key, if there is none. `capability` is the token of one, by which this side is let in. Offers nothing but
    /// [`Features::CAPABILITIES`].
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_as(
        host_and_port: &str,
        worker: Option<Fingerprint>,
        identity: &ClientIdentity,
        capability: Option<[u8; CAPABILITY_TOKEN_BYTES]>,
        timeout: Duration,
    ) -> Result<Self, ConnectError> {
        let end = Instant::now() + timeout;
        let address = WorkerAddress::from(Address::Tcp(host_and_port.to_owned()));
        let connect = || -> io::Result<Transport> {
            let socket = connect_tcp(host_and_port, timeout)?;
            let Some(worker) = worker else { return Ok(Transport::Tcp(socket)) };
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            socket.set_read_timeout(Some(left))?;
            socket.set_write_timeout(Some(left))?;
            let mut channel = ClientChannel::new(identity, Expected::Known(worker), None)?;
            if let Some(token) = capability {
                channel = channel.with_capability(token);
            }
            Ok(Transport::Secured(Box::new(Secured::open(socket, channel)?)))
        };
        let options = ConnectOptions { offer: Some(Features::CAPABILITIES), ..ConnectOptions::default() };
        Self::open_over(&address, timeout, &options, connect).map_err(|(error, _)| error)
    }

    /// Reads all bytes that a capability is for, and closes the connection. Passes each piece to `take`, which returns a buffer to use again, or
    /// `None` if nobody wants the rest.
    ///
    /// # Errors
    /// What the worker says, or the connection is lost.
    pub fn read_capability(
        self,
        capability: &Capability<'_>,
        take: &mut dyn FnMut(Vec<u8>) -> Option<Vec<u8>>,
    ) -> Result<(), CallError> {
        self.inner.transport.set_timeout(Some(SILENCE)).map_err(|_| CallError::Lost)?;
        let mut arriving = VecDeque::with_capacity(PIECES);
        let read = self.read_pieces(capability, &mut arriving, take);
        if read.is_ok() {
            self.leave(SILENCE);
        }
        // Until the connection is closed its replies may be written to the buffers.
        drop(self);
        drop(arriving);
        read
    }

    fn read_pieces(
        &self,
        capability: &Capability<'_>,
        arriving: &mut VecDeque<Piece>,
        take: &mut dyn FnMut(Vec<u8>) -> Option<Vec<u8>>,
    ) -> Result<(), CallError> {
        let (token, mut offset) = (capability.token, 0);
        let mut used = Vec::new();
        loop {
            while arriving.len() < PIECES && offset < capability.len_bytes {
                let left = usize::try_from(capability.len_bytes - offset).unwrap_or(usize::MAX);
                let mut buffer = std::mem::take(&mut used);
                buffer.resize(left.min(PIECE_BYTES), 0);
                let length = buffer.len() as u64;
                let rows = Rows::one(buffer.as_mut_ptr(), buffer.len());
                let request = CapabilityRead { token, offset, length };
                offset += length;
                // Behind the last bytes: ends the capability, and says whether all could be read.
                let end = CapabilityRead { token, offset, length: 0 };
                let behind = if offset == capability.len_bytes { &[end][..] } else { &[] };
                // SAFETY: the buffer is here or in `arriving` until its reply was waited for, or the connection is closed.
                let flight = unsafe { self.start_read(&request, Extra::default(), rows, behind) }?;
                arriving.push_back(Piece { flight: Some(flight), buffer });
            }
            let Some(piece) = arriving.front_mut() else { return Ok(()) };
            if let Some(flight) = piece.flight.take() {
                let (read, behind) = self.finish_all(flight)?;
                read.and_then(|()| behind.into_iter().try_for_each(|end| end.map(drop)))
                    .map_err(CallError::Hip)?;
            }
            let Some(Piece { buffer, .. }) = arriving.pop_front() else { return Ok(()) };
            used = take(buffer).ok_or(CallError::Hip(HipError::UNKNOWN))?;
        }
    }

    /// Returns where another worker finds the worker of this connection; `None` if it is not reached over TCP.
    pub fn place(&self) -> Option<Place> {
        let host_and_port = match self.inner.address.address() {
            Address::Tcp(host_and_port) => host_and_port.clone(),
            Address::Secured(secured) => secured.host_and_port.clone(),
            Address::Unix(_) | Address::Shm(_) => return None,
        };
        let worker = self.inner.transport.worker();
        let is_loopback = self.inner.transport.is_loopback();
        Some(Place { host_and_port, worker, is_loopback })
    }
}

/// One end of a copy between workers: slices of rows in the memory of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyEnd {
    /// The address of the first byte.
    pub address: u64,
    /// Bytes from one row to the next.
    pub pitch: u64,
    /// Bytes from one slice to the next.
    pub slice: u64,
    /// The stream whose work comes first.
    pub stream: u64,
}

impl Connection {
    /// Copies memory of another worker's session to memory of this one's, from worker to worker: `size` is the bytes of a row, the rows of a
    /// slice, and the slices. Waits until the bytes are there. Returns false if these workers cannot do so; then nothing was copied, or
    /// some of it.
    ///
    /// # Errors
    /// What a worker answers, or a lost connection.
    pub fn copy_from(
        &self,
        dst: &CopyEnd,
        other: &Self,
        src: &CopyEnd,
        size: [u64; 3],
    ) -> Result<bool, CallError> {
        let know = |connection: &Self| connection.features().contains(Features::CAPABILITIES);
        let Some(place) = other.place().filter(|_| know(self) && know(other)) else { return Ok(false) };
        // A loopback address means another worker there, unless that is this machine as well.
        if place.is_loopback && !self.place().is_some_and(|place| place.is_loopback) {
            return Ok(false);
        }
        if place.host_and_port.len() > CAPABILITY_ADDRESS_MAX_BYTES {
            return Ok(false);
        }
        let Ok(token) = random_bytes() else { return Ok(false) };
        let [width, height, depth] = size;
        let CopyEnd { address, pitch, slice, stream } = *src;
        let (timeout_ms, reserved) = (CAPABILITY_TIMEOUT_MAX_MS, 0);
        let capability = CapabilityGive {
            token,
            address,
            pitch,
            slice,
            width,
            height,
            depth,
            stream,
            timeout_ms,
            reserved,
        };
        match other.ask(&capability) {
            // It has given as many as it may give.
            Err(CallError::Hip(HipError::NOT_READY)) => return Ok(false),
            granted => granted?,
        }
        let CopyEnd { address: dst, pitch, slice, stream } = *dst;
        let worker = place.worker.map_or([0; 32], |worker| *worker.bytes());
        let address_length = u32::try_from(place.host_and_port.len()).unwrap_or(u32::MAX);
        let copy = CapabilityCopy {
            token,
            worker,
            dst,
            pitch,
            slice,
            width,
            height,
            depth,
            stream,
            address_length,
            reserved,
        };
        match self.ask_with(&copy, Extra { tail: place.host_and_port.as_bytes(), ..Extra::default() }) {
            Ok(()) => Ok(true),
            Err(CallError::Hip(HipError::PEER_ACCESS_UNSUPPORTED)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Bytes that were asked for.
struct Piece {
    flight: Option<super::Flight<CapabilityRead>>,
    buffer: Vec<u8>,
}
