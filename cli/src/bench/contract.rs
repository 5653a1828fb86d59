//! A simple worker for comparisons, as HIPR 1.0 describes one: it reads a header, reads the payload into newly allocated
//! memory, executes the request, answers if asked to, and only then reads the next. Its device computes nothing.

use super::socket::Connection;
use hipr_proto::op::{self, LaunchArgs};
use hipr_proto::{FLAG_HAS_INLINE_DATA, FLAG_NO_REPLY, FLAG_RESPONSE, Header, MAGIC, Opcode, Wire};
use std::hint::black_box;
use std::io::{self, Read, Write};

/// Serves one client until it disconnects.
pub(crate) fn serve(mut connection: Connection) -> io::Result<()> {
    loop {
        let mut bytes = [0; Header::SIZE];
        connection.read_exact(&mut bytes)?;
        let header = Header::take(&mut bytes.as_slice()).map_err(invalid)?;
        if header.magic != MAGIC {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let len = usize::try_from(header.payload_length).map_err(invalid)?;
        let mut payload = vec![0; len];
        connection.read_exact(&mut payload)?;
        let reply = carry_out(&header, &payload).map_err(invalid)?;
        if !header.has(FLAG_NO_REPLY) {
            answer(&mut connection, &header, &reply)?;
        }
        if header.op == Opcode::SHUTDOWN {
            return Ok(());
        }
    }
}

/// A reply without its error code.
#[derive(Default)]
struct Reply {
    fixed: Vec<u8>,
    inline: Vec<u8>,
}

/// Executes a request, successfully. Replies are zeros except where clients need a value.
fn carry_out(header: &Header, payload: &[u8]) -> Result<Reply, hipr_proto::WireError> {
    let mut fixed = payload;
    let mut reply = Reply::default();
    match header.op {
        Opcode::LAUNCH_KERNEL => {
            let launch = op::LaunchKernel::take(&mut fixed)?;
            let args = LaunchArgs::parse(&launch, fixed)?;
            // `kernelParams`: what the contract has a worker make of a launch.
            let params: Vec<*const u8> = args.iter().map(<[u8]>::as_ptr).collect();
            black_box((launch.function, params));
        }
        Opcode::MEMCPY | Opcode::MEMCPY_ASYNC => {
            let copy = op::Memcpy::take(&mut fixed)?;
            if copy.kind == op::kind::DEVICE_TO_HOST {
                // Written, as a copy from a device would.
                reply.inline.resize(usize::try_from(copy.size).unwrap_or(0), 0);
            }
            black_box(fixed);
        }
        Opcode::GET_DEVICE_COUNT => op::GetDeviceCountReply { count: 1 }.put(&mut reply.fixed),
        other => reply.fixed = vec![0; other.info().map_or(0, |info| info.reply.size)],
    }
    Ok(reply)
}

/// Sends a reply: one write for header, error code and fixed part, and one for bulk bytes.
fn answer(connection: &mut Connection, request: &Header, reply: &Reply) -> io::Result<()> {
    let len = i32::SIZE + reply.fixed.len() + reply.inline.len();
    let flags = if reply.inline.is_empty() { FLAG_RESPONSE } else { FLAG_RESPONSE | FLAG_HAS_INLINE_DATA };
    let mut bytes = Vec::with_capacity(Header::SIZE + i32::SIZE + reply.fixed.len());
    Header::new(request.op, request.request_id, len as u64, flags).put(&mut bytes);
    0i32.put(&mut bytes);
    bytes.extend_from_slice(&reply.fixed);
    connection.write_all(&bytes)?;
    connection.write_all(&reply.inline)
}

fn invalid(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}
