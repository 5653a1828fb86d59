//! Which of the workers' devices the program sees, and in which order.
//!
//! All devices of the first worker come before those of the second. `ROCR_VISIBLE_DEVICES` chooses among all; `HIP_VISIBLE_DEVICES`, or `CUDA_VISIBLE_DEVICES` where that is not set, chooses
//! among those. Each is a list of numbers, or of `GPU-` and a device's UUID. As with AMD's runtime the list ends with the first entry
//! that means no device, a device that comes twice counts once, and an empty list leaves no device.

use hipr_client::Connection;
use hipr_proto::{HipError, HipResult, op};

/// Begins the UUID of a device.
const UUID_PREFIX: &str = "GPU-";
/// How the UUIDs of emulated GPUs begin, which are the same on every worker.
const EMULATED: &[u8] = b"hipr-";

/// A device of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Device {
    /// The number of the link to the worker.
    link: usize,
    /// The worker's number of the device.
    number: i32,
}

/// The program's devices; `None` for all that the only worker has.
#[derive(Debug, Default)]
pub(super) struct Visible(Option<Vec<Device>>);

impl Visible {
    /// Reads the environment variables. Asks the workers for their devices only if one of the variables is set or there are several workers.
    ///
    /// # Errors
    /// `hipErrorNoDevice`: no device is left; what a worker answers.
    pub(super) fn from_env(connections: &[Connection]) -> HipResult<Self> {
        let variable = |name| std::env::var_os(name).map(|text| (name, text.to_string_lossy().into_owned()));
        let below = variable("ROCR_VISIBLE_DEVICES");
        let above = variable("HIP_VISIBLE_DEVICES").or_else(|| variable("CUDA_VISIBLE_DEVICES"));
        if below.is_none() && above.is_none() && connections.len() == 1 {
            return Ok(Self(None));
        }
        let uuid = |device: Device| {
            let request = op::DeviceGetUuid { device: u64::try_from(device.number).unwrap_or(0) };
            let reply = connections.get(device.link)?.ask(&request).ok()?;
            Some(of_worker(device.link, reply.uuid))
        };
        let mut devices = Vec::new();
        for (link, connection) in connections.iter().enumerate() {
            devices.extend((0..connection.device_count()?).map(|number| Device { link, number }));
        }
        for (name, text) in below.into_iter().chain(above) {
            devices = chosen(&devices, &text, uuid);
            if devices.is_empty() {
                tracing::info!("{name}={text} leaves no device");
                return Err(HipError::NO_DEVICE);
            }
        }
        Ok(Self(Some(devices)))
    }

    /// Returns the number of devices, if it is not all that the only worker has.
    pub(super) fn count(&self) -> Option<i32> {
        self.0.as_ref().map(|devices| i32::try_from(devices.len()).unwrap_or(i32::MAX))
    }

    /// Returns the worker's number of a device; what is no device stays so.
    #[inline]
    pub(super) fn there(&self, device: i32) -> i32 {
        match &self.0 {
            None => device,
            Some(_) => self.device(device).map_or(-1, |device| device.number),
        }
    }

    /// Returns the number of the link to a device's worker; 0 for what is no device.
    pub(super) fn link(&self, device: i32) -> usize {
        self.device(device).map_or(0, |device| device.link)
    }

    fn device(&self, device: i32) -> Option<Device> {
        self.0.as_ref()?.get(usize::try_from(device).ok()?).copied()
    }

    /// Returns the program's number of a worker's device, if the program sees it.
    pub(super) fn here(&self, link: usize, number: i32) -> Option<i32> {
        match &self.0 {
            None => Some(number),
            Some(devices) => {
                let place = devices.iter().position(|device| *device == Device { link, number })?;
                i32::try_from(place).ok()
            }
        }
    }
}

/// Returns the UUID of a device of the worker with this number as the program sees it. That of an emulated GPU has the number, from the
/// second worker on: `hipr1emulated-00`.
pub(super) fn of_worker(link: usize, mut uuid: [u8; 16]) -> [u8; 16] {
    if link > 0 && uuid.starts_with(EMULATED) {
        uuid[EMULATED.len() - 1] = b"0123456789abcdef"[link % 16];
    }
    uuid
}

/// Returns those of `devices` that a list chooses.
fn chosen<D: Copy + PartialEq>(devices: &[D], list: &str, uuid: impl Fn(D) -> Option<[u8; 16]>) -> Vec<D> {
    let find = |entry: &str| match entry.strip_prefix(UUID_PREFIX) {
        Some(wanted) => {
            devices.iter().copied().find(|device| uuid(*device).is_some_and(|it| it == wanted.as_bytes()))
        }
        None => {
            let place: usize = entry.parse().ok()?;
            // No sign and no other zeros: AMD's runtime takes neither.
            if place.to_string() == entry { devices.get(place).copied() } else { None }
        }
    };
    let mut found = Vec::new();
    for device in list.split(',').map_while(find) {
        if !found.contains(&device) {
            found.push(device);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_with_what_is_no_device() {
        let uuid = |device: i32| Some(if device == 9 { *b"0123456789abcdef" } else { [0; 16] });
        for (list, expected) in [
            ("", &[][..]),
            ("0", &[7]),
            ("2,0", &[9, 7]),
            ("0,0", &[7]),
            ("1,0,1", &[8, 7]),
            ("0,5,1", &[7]),
            ("5,0", &[]),
            ("-1", &[]),
            ("0,-1,2", &[7]),
            ("1,", &[8]),
            (",1", &[]),
            (" 1", &[]),
            ("0, 1", &[7]),
            ("1 ,2", &[]),
            ("01", &[]),
            ("+1", &[]),
            ("1x", &[]),
            ("99999999999999999999", &[]),
            ("GPU-0123456789abcdef,1", &[9, 8]),
            ("0,GPU-0123456789abcdef,2", &[7, 9]),
            ("GPU-0123456789abcde", &[]),
            ("GPU-", &[]),
        ] {
            assert_eq!(chosen(&[7, 8, 9], list, uuid), expected, "{list}");
        }
    }

    #[test]
    fn numbers_are_translated_in_both_directions() {
        let of = |link| move |number| Device { link, number };
        let some = Visible(Some([2, 0].map(of(0)).to_vec()));
        assert_eq!([0, 1, 2, -1].map(|device| some.there(device)), [2, 0, -1, -1]);
        assert_eq!([0, 1, 2].map(|device| some.here(0, device)), [Some(1), None, Some(0)]);
        assert_eq!((some.count(), Visible::default().count()), (Some(2), None));
        assert_eq!((Visible::default().there(5), Visible::default().here(0, 5)), (5, Some(5)));
        let two = Visible(Some([of(0)(0), of(1)(0), of(1)(1)].to_vec()));
        assert_eq!([0, 1, 2, 3, -1].map(|device| two.link(device)), [0, 1, 1, 0, 0]);
        assert_eq!([0, 1, 2, 3, -1].map(|device| two.there(device)), [0, 0, 1, -1, -1]);
    }
}
