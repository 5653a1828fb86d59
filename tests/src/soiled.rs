//! What new memory has in it, where the HIP runtime gives memory with bytes of somebody.

use crate::WireClient;
use crate::faults::{Rig, SOIL, SOILED};
use hipr_proto::op::{self, kind};

/// Checks new memory of each kind in a worker whose runtime gives memory with bytes in it. Where these can be another session's it
/// `is_cleared`; a process of its own gets what its driver gives, which is nobody's.
pub fn check(rig: &Rig<'_>, is_cleared: bool) {
    let (chain, _folder) = rig.start(&[(SOILED, "1")]);
    let mut client = WireClient::open(chain.address());
    let expected = if is_cleared { 0 } else { SOIL as u8 };
    let size = 100_000;
    let pool = client.call(&op::DeviceGetDefaultMemPool { device: 0 }).expect("a pool").mem_pool;
    let own = client.call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
    let mut places = vec![
        ("hipMalloc", client.call(&op::Malloc { size, flags: 0 }).map(|reply| reply.device_ptr)),
        ("uncached", client.call(&op::Malloc { size, flags: 3 }).map(|reply| reply.device_ptr)),
        ("hipHostMalloc", client.call(&op::MallocHost { size, flags: 0 }).map(|reply| reply.device_ptr)),
        ("managed", client.call(&op::MallocManaged { size, flags: 1 }).map(|reply| reply.device_ptr)),
    ];
    for stream in [0, own] {
        let made = client.call(&op::MallocAsync { size, stream }).map(|reply| reply.device_ptr);
        places.push(("hipMallocAsync", made));
        let made = client
            .call(&op::MallocFromPoolAsync { size, mem_pool: pool, stream })
            .map(|reply| reply.device_ptr);
        places.push(("hipMallocFromPoolAsync", made));
    }
    for (name, place) in places {
        let src = place.unwrap_or_else(|why| panic!("{name}: {why}"));
        let copy = op::Memcpy { dst: 0, src, size, kind: kind::DEVICE_TO_HOST, stream: 0 };
        let bytes = client.call_with(&copy, &[], None).inline;
        assert_eq!(bytes.len() as u64, size, "{name}");
        assert!(bytes.iter().all(|&byte| byte == expected), "{name} has {:?}", &bytes[..16]);
    }
}
