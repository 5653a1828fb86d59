//! Which of the worker's devices the program sees, and in which order.
//!
//! `ROCR_VISIBLE_DEVICES` chooses among what the worker has; `HIP_VISIBLE_DEVICES`, or `CUDA_VISIBLE_DEVICES` where that is not set, chooses
//! among those. Each is a list of numbers, or of `GPU-` and a device's UUID. As with AMD's runtime the list ends with the first entry
//! that means no device, a device that comes twice counts once, and an empty list leaves no device.

use hipr_client::Connection;
use hipr_proto::{HipError, HipResult, op};

/// Begins the UUID of a device.
const UUID_PREFIX: &str = "GPU-";

/// The worker's numbers of the program's devices; `None` for all of them.
#[derive(Debug, Default)]
pub(super) struct Visible(Option<Vec<i32>>);

impl Visible {
    /// Reads the environment variables. Asks the worker for its devices only if one of them is set.
    ///
    /// # Errors
    /// `hipErrorNoDevice`: no device is left; what the worker answers.
    pub(super) fn from_env(connection: &Connection) -> HipResult<Self> {
        let variable = |name| std::env::var_os(name).map(|text| (name, text.to_string_lossy().into_owned()));
        let below = variable("ROCR_VISIBLE_DEVICES");
        let above = variable("HIP_VISIBLE_DEVICES").or_else(|| variable("CUDA_VISIBLE_DEVICES"));
        if below.is_none() && above.is_none() {
            return Ok(Self(None));
        }
        let uuid = |device: i32| {
            let request = op::DeviceGetUuid { device: u64::try_from(device).unwrap_or(0) };
            connection.ask(&request).ok().map(|reply| reply.uuid)
        };
        let mut devices: Vec<i32> = (0..connection.device_count()?).collect();
        for (name, text) in below.into_iter().chain(above) {
            devices = chosen(&devices, &text, uuid);
            if devices.is_empty() {
                tracing::info!("{name}={text} leaves no device");
                return Err(HipError::NO_DEVICE);
            }
        }
        Ok(Self(Some(devices)))
    }

    /// Returns the number of devices, if it is not all that the worker has.
    pub(super) fn count(&self) -> Option<i32> {
        self.0.as_ref().map(|devices| i32::try_from(devices.len()).unwrap_or(i32::MAX))
    }

    /// Returns the worker's number of a device; what is no device stays so.
    #[inline]
    pub(super) fn there(&self, device: i32) -> i32 {
        match &self.0 {
            None => device,
            Some(devices) => {
                let place = usize::try_from(device).ok();
                place.and_then(|place| devices.get(place)).copied().unwrap_or(-1)
            }
        }
    }

    /// Returns the program's number of a device of the worker, if the program sees it.
    pub(super) fn here(&self, device: i32) -> Option<i32> {
        match &self.0 {
            None => Some(device),
            Some(devices) => {
                let place = devices.iter().position(|other| *other == device)?;
                i32::try_from(place).ok()
            }
        }
    }
}

/// Returns those of `devices` that a list chooses.
fn chosen(devices: &[i32], list: &str, uuid: impl Fn(i32) -> Option<[u8; 16]>) -> Vec<i32> {
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
        let some = Visible(Some(vec![2, 0]));
        assert_eq!([0, 1, 2, -1].map(|device| some.there(device)), [2, 0, -1, -1]);
        assert_eq!([0, 1, 2].map(|device| some.here(device)), [Some(1), None, Some(0)]);
        assert_eq!((some.count(), Visible::default().count()), (Some(2), None));
        assert_eq!((Visible::default().there(5), Visible::default().here(5)), (5, Some(5)));
    }
}
