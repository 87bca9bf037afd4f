//! Durations and times as people write and read them.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The longest duration that can be set.
const MAX_DURATION: Duration = Duration::from_hours(365 * 24);

/// Parses a duration as people write it: `90s`, `1h 30m`. Fails if the text is not a duration, or
/// one that is negative or longer than a year; the message says which.
pub fn parse(text: &str) -> Result<Duration, String> {
    let duration: jiff::SignedDuration = text
        .parse()
        .map_err(|_| "not a duration like `90s` or `1h 30m`".to_owned())?;
    match Duration::try_from(duration) {
        Err(_) => Err("a duration cannot be negative".to_owned()),
        Ok(duration) if duration > MAX_DURATION => Err("longer than a year (`8760h`)".to_owned()),
        Ok(duration) => Ok(duration),
    }
}

/// Formats a duration that the user has set, exactly: `90s` is `1m 30s`.
pub fn exact(duration: Duration) -> String {
    match jiff::SignedDuration::try_from(duration) {
        Ok(duration) => format!("{duration:#}"),
        Err(_) => format!("{duration:?}"),
    }
}

/// Formats a time in the local time zone, to the second.
pub fn local_time(time: Timestamp) -> String {
    let zoned = time.to_zoned(TimeZone::system());
    zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Formats a measured duration with the precision that people need: `0.3s`, `2m 05s`, `1h 02m`.
pub fn show(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{:.1}s", duration.as_secs_f64()),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_precision_that_people_want() {
        assert_eq!(show(Duration::from_millis(340)), "0.3s");
        assert_eq!(show(Duration::from_secs(125)), "2m 05s");
        assert_eq!(show(Duration::from_secs(3725)), "1h 02m");
    }

    #[test]
    fn what_was_asked_for_is_shown_exactly() {
        for text in ["3s", "1m 30s", "1h", "1ms", "0s", "8760h"] {
            assert_eq!(exact(parse(text).unwrap()), text);
        }
    }

    #[test]
    fn durations_are_those_of_people() {
        assert_eq!(parse("1h 30m"), Ok(Duration::from_mins(90)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
        for bad in [
            "",
            "5",
            "soon",
            "-5s",
            "9000h",
            "99999999999999999999h",
            "1d",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
