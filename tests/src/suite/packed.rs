//! The part of the suite that packs bytes.

use super::{BUFFER_BYTES, KERNELS, Lost, NOWHERE, Suite, nothing};
use hipr_io::Packer;
use hipr_proto::op;

impl Suite<'_> {
    pub(super) fn packed(&mut self, buffer: u64, stream: u64) -> Result<(), Lost> {
        let pack = |bytes: &[u8]| {
            let (mut packer, mut packed) = (Packer::new().expect("memory"), Vec::new());
            assert!(packer.pack(bytes, &mut packed), "these can be packed");
            packed
        };
        let packed = pack(&[5; BUFFER_BYTES as usize]);
        let size = BUFFER_BYTES;
        let put = op::PutPacked {
            dst: buffer,
            size,
            offset: 0,
            length: size,
            packed: packed.len() as u64,
            stream,
            waits: 1,
            purpose: op::purpose::WRITTEN,
        };
        self.both(&put, &[], Some(packed))?;
        let get = op::GetPacked { src: buffer, size, offset: 0, length: size, stream };
        self.request(&get, &[], None, |reply| format!("packed {}", reply.is_packed))?;
        let packed = pack(KERNELS);
        let load = op::ModuleLoadPacked { data_size: KERNELS.len() as u64, packed: packed.len() as u64 };
        let loaded = self.request(&load, &[], Some(packed), nothing)?;
        let module = loaded.map_or(NOWHERE, |reply| reply.module);
        self.request(&op::ModuleUnload { module }, &[], None, nothing)?;
        Ok(())
    }
}
