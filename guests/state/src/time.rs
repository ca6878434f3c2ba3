//! Points in time: milliseconds since 1970 in memory, RFC 3339 with milliseconds and `Z` in files.
//!
//! Written by hand because the need is two functions on UTC: the calendar arithmetic is twenty lines that the tests walk day
//! by day, while a date crate brings time zones, formats and 50 to 200 kB into every guest.

use std::{
    fmt,
    str::FromStr,
    time::{SystemTime, UNIX_EPOCH},
};

/// How far ahead of `now` a time may be and still count as now, in milliseconds.
///
/// Another process may have written the file after we read the clock; anything beyond that is a wrong clock or a lie.
pub const MAX_CLOCK_SKEW_MS: i64 = 5_000;

const MS_PER_DAY: i64 = 24 * 60 * 60 * 1000;

/// A point in time in milliseconds since 1970-01-01T00:00:00Z, from year 0 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 0000-01-01T00:00:00.000Z: RFC 3339 has four digits for the year.
    const MIN: i64 = -62_167_219_200_000;
    /// 9999-12-31T23:59:59.999Z.
    const MAX: i64 = 253_402_300_799_999;

    /// The point that many milliseconds after 1970; outside of the years 0 to 9999 the nearest that is inside.
    pub fn from_epoch_ms(ms: i64) -> Self {
        Self(ms.clamp(Self::MIN, Self::MAX))
    }

    /// Milliseconds since 1970.
    pub fn epoch_ms(self) -> i64 {
        self.0
    }

    /// Milliseconds from `earlier` to `self`; negative if `earlier` is later.
    pub fn ms_since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }

    /// The point `ms` milliseconds later.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self::from_epoch_ms(self.0.saturating_add(ms))
    }

    /// Whether `self` is later than `now` by more than clocks and processes differ.
    pub fn is_future(self, now: Self) -> bool {
        self.ms_since(now) > MAX_CLOCK_SKEW_MS
    }

    /// Whether `self` is at most `window_ms` before `now`, and not in the future.
    pub fn is_within(self, window_ms: i64, now: Self) -> bool {
        !self.is_future(now) && now.ms_since(self) <= window_ms
    }

    /// `2026-11-30 14:28`, the date of a note: UTC, to the minute.
    pub fn to_minute_text(self) -> String {
        self.to_string()[..16].replace('T', " ")
    }

    /// Reads [`to_minute_text`](Self::to_minute_text).
    pub fn parse_minute_text(text: &str) -> Option<Self> {
        if text.len() == 16 && text.as_bytes()[10] == b' ' { format!("{text}:00Z").parse().ok() } else { None }
    }

    /// `2026-11-30T14-28-00-123Z`: the time in a file's name, which sorts like the time.
    pub fn to_file_text(self) -> String {
        self.to_string().replace([':', '.'], "-")
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let ms = |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self::from_epoch_ms(ms(after)),
            Err(before) => Self::from_epoch_ms(-ms(before.duration())),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_of_day(self.0.div_euclid(MS_PER_DAY));
        let ms = self.0.rem_euclid(MS_PER_DAY);
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        write!(formatter, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
    }
}

/// The text is not a time in RFC 3339.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time in RFC 3339")]
pub struct ParseTimestampError;

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    /// Reads `2026-11-30T14:28:00.123Z`, with any number of digits of the second (or none) and any offset.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text.as_bytes()).ok_or(ParseTimestampError)
    }
}

fn parse(text: &[u8]) -> Option<Timestamp> {
    let (date, rest) = text.split_at_checked(10)?;
    let (clock, rest) = rest.split_at_checked(9)?;
    if date[4] != b'-'
        || date[7] != b'-'
        || !matches!(clock[0], b'T' | b't' | b' ')
        || clock[3] != b':'
        || clock[6] != b':'
    {
        return None;
    }
    let (year, month, day) = (number(&date[..4])?, number(&date[5..7])?, number(&date[8..])?);
    let (hour, minute, second) = (number(&clock[1..3])?, number(&clock[4..6])?, number(&clock[7..])?);
    // 60 is a leap second; it reads as the start of the next minute.
    if !(1..=12).contains(&month)
        || !(1..=days_in_month(year, month)).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }

    let digits =
        rest.strip_prefix(b".").map_or(0, |fraction| fraction.iter().take_while(|byte| byte.is_ascii_digit()).count());
    let (fraction, zone) = if rest.first() == Some(&b'.') { rest[1..].split_at(digits) } else { (&[][..], rest) };
    if rest.first() == Some(&b'.') && digits == 0 {
        return None;
    }
    let ms = (0..3).fold(0, |ms, place| ms * 10 + i64::from(fraction.get(place).map_or(0, |digit| digit - b'0')));

    let offset_minutes = match zone {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 60 + minutes) * if *sign == b'+' { 1 } else { -1 }
        }
        _ => return None,
    };
    let minutes = hour * 60 + minute - offset_minutes;
    Some(Timestamp::from_epoch_ms(day_of_date(year, month, day) * MS_PER_DAY + (minutes * 60 + second) * 1000 + ms))
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

// Both directions count years from 1 March, so that the leap day is a year's last; an era is 400 years or 146,097 days, and
// 719,468 days lie between 0000-03-01 and 1970-01-01. (Howard Hinnant, "chrono-compatible low-level date algorithms".)

fn day_of_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn date_of_day(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, day_of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_ten_thousand_years_is_followed_by_the_next() {
        let (mut year, mut month, mut day) = (0, 1, 1);
        for count in Timestamp::MIN / MS_PER_DAY..=Timestamp::MAX / MS_PER_DAY {
            assert_eq!(date_of_day(count), (year, month, day));
            assert_eq!(day_of_date(year, month, day), count);
            day += 1;
            if day > days_in_month(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!((year, month, day), (10_000, 1, 1));
    }

    #[test]
    fn a_minute_is_written_and_read() {
        let time = Timestamp::from_epoch_ms(1_796_048_880_123);
        assert_eq!(time.to_minute_text(), "2026-11-30 14:28");
        assert_eq!(Timestamp::parse_minute_text("2026-11-30 14:28").map(Timestamp::epoch_ms), Some(1_796_048_880_000));
        for text in
            ["", "2026-11-30T14:28", "2026-11-30 14:28:00", "2026-13-30 14:28", "2026-11-30 14:2x", "한글한글한 글"]
        {
            assert_eq!(Timestamp::parse_minute_text(text), None, "{text}");
        }
        assert_eq!(time.to_file_text(), "2026-11-30T14-28-00-123Z");
    }

    #[test]
    fn text_and_back_gives_the_same_millisecond() {
        // A stride without a common factor with seconds, hours or days visits all of their digits.
        let mut ms = Timestamp::MIN;
        while ms <= Timestamp::MAX {
            let time = Timestamp::from_epoch_ms(ms);
            let text = time.to_string();
            assert_eq!(text.len(), 24);
            assert_eq!(text.parse(), Ok(time), "{text}");
            ms += 86_400_000 * 97 + 3_607_013;
        }
        for edge in [Timestamp::MIN, -1, 0, 1, 999, 1000, 951_782_400_000, Timestamp::MAX] {
            let time = Timestamp::from_epoch_ms(edge);
            assert_eq!((time.to_string().parse(), time.epoch_ms()), (Ok(time), edge));
        }
    }

    #[test]
    fn known_times_read_as_known_milliseconds() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59.999Z", -1),
            ("2026-11-30T14:28:00.123Z", 1_796_048_880_123),
            ("2026-11-30T14:28:00.123456789Z", 1_796_048_880_123),
            ("2026-11-30T14:28:00.1Z", 1_796_048_880_100),
            ("2026-11-30T23:28:00+09:00", 1_796_048_880_000),
            ("2026-11-30T08:58:00-05:30", 1_796_048_880_000),
            ("2026-11-30t14:28:00z", 1_796_048_880_000),
            ("2026-11-30 14:28:00Z", 1_796_048_880_000),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ] {
            assert_eq!(text.parse().map(Timestamp::epoch_ms), Ok(ms), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "yesterday",
            "2026-11-30",
            "2026-11-30T14:28:00",
            "2026-11-30T14:28Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:61Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.1",
            "2026-01-01T00:00:00+1:00",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00Zx",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00,5Z",
            "2026-1-01T00:00:00Z",
            "٢026-01-01T00:00:00Z",
            "1796048880123",
            "2026-01-01T00:00:0\u{e9}Z",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(ParseTimestampError), "{text:?}");
        }
    }

    #[test]
    fn a_window_takes_a_small_skew_for_now_and_a_large_one_for_the_future() {
        let now = Timestamp::from_epoch_ms(1_000_000);
        for (age_ms, window_ms, inside) in [
            (0, 0, true),
            (60_000, 60_000, true),
            (60_001, 60_000, false),
            (-5_000, 60_000, true),
            (-5_001, 60_000, false),
        ] {
            assert_eq!(now.plus_ms(-age_ms).is_within(window_ms, now), inside, "{age_ms} in {window_ms}");
        }
    }

    #[test]
    fn extreme_times_are_clamped() {
        assert_eq!(Timestamp::from_epoch_ms(i64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Timestamp::from_epoch_ms(i64::MIN).to_string(), "0000-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_epoch_ms(0).plus_ms(i64::MAX).epoch_ms(), Timestamp::MAX);
        assert_eq!("0000-01-01T00:00:00+23:59".parse().map(Timestamp::epoch_ms), Ok(Timestamp::MIN));
    }
}
