//! Times as people read them.

/// Writes a number of seconds since 1970 as date and time of day in UTC, as RFC 3339 has them, without fractions and zone:
/// `2026-11-25T17:08:36`.
pub fn date_and_time(seconds: u64) -> String {
    // Days are counted from 1 March of year 0, so that a leap day is the last of its year.
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_seconds_is_too_large() {
        assert_eq!(date_and_time(1_709_164_800), "2024-02-29T00:00:00");
        assert_eq!(date_and_time(u64::MAX), "584554051223-11-09T07:00:15");
    }
}
