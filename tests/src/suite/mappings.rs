//! The suite's operations on virtual memory.

use super::{Lost, NOWHERE, Suite, nothing};
use hipr_proto::op;

impl Suite<'_> {
    /// Maps physical memory of as many bytes as the granularity at reserved addresses; shares it within the session.
    pub(super) fn mappings(&mut self) -> Result<(), Lost> {
        const UNKNOWN: [u8; 64] = [7; 64];
        let granularity = self.request(&op::MemGranularity { device: 0 }, &[], None, nothing)?;
        let size = granularity.map_or(1 << 21, |reply| reply.granularity);
        self.ask(&op::MemGranularity { device: 9 })?;
        self.request(&op::AddressReserve { size: size + 1, alignment: 0, wanted: 0 }, &[], None, nothing)?;
        let reserve = op::AddressReserve { size: 4 * size, alignment: 4 * size, wanted: 0 };
        let base = self.make(&reserve, |reply| reply.device_ptr)?;
        self.request(&op::PhysicalCreate { size, device: 9, reserved: 0 }, &[], None, nothing)?;
        let create = op::PhysicalCreate { size, device: 0, reserved: 0 };
        let physical = self.make(&create, |reply| reply.physical)?;
        let named = self.request(&op::PhysicalExport { physical }, &[], None, nothing)?;
        let handle = named.map_or(UNKNOWN, |reply| reply.handle);
        let import = op::PhysicalImport { handle };
        let imported = self.make(&import, |reply| reply.physical)?;
        self.request(&op::PhysicalImport { handle: UNKNOWN }, &[], None, nothing)?;
        self.request(&op::MemMap { device_ptr: base, size, physical }, &[], None, nothing)?;
        self.tell(&op::MemMap { device_ptr: base + size, size, physical: imported }, &[], None)?;
        self.ask(&op::MemMap { device_ptr: base, size, physical })?;
        self.ask(&op::MemMap { device_ptr: base + 2 * size, size, physical: NOWHERE })?;
        let access = op::MemSetAccess { device_ptr: base, size: 2 * size, device: 0, access: 3 };
        self.both(&access, &[], None)?;
        self.ask(&op::MemSetAccess { size: size / 2, ..access })?;
        self.request(&op::Memset { dst: base, value: 3, size: 2 * size, stream: 0 }, &[], None, nothing)?;
        let last = op::Memcpy {
            dst: 0,
            src: base + 2 * size - 8,
            size: 8,
            kind: op::kind::DEVICE_TO_HOST,
            stream: 0,
        };
        self.ask(&last)?;
        self.ask(&op::AddressFree { device_ptr: base, size: 4 * size })?;
        self.request(&op::MemSetAccess { access: 0, ..access }, &[], None, nothing)?;
        self.ask(&last)?;
        self.request(&op::MemUnmap { device_ptr: base, size }, &[], None, nothing)?;
        self.ask(&op::MemUnmap { device_ptr: base, size })?;
        self.tell(&op::MemUnmap { device_ptr: base + size, size }, &[], None)?;
        self.request(&op::PhysicalRelease { physical }, &[], None, nothing)?;
        self.ask(&op::PhysicalRelease { physical })?;
        self.tell(&op::PhysicalRelease { physical: imported }, &[], None)?;
        self.request(&op::AddressFree { device_ptr: base, size: 4 * size }, &[], None, nothing)?;
        self.ask(&op::GetLastError {}).map(drop)
    }
}
