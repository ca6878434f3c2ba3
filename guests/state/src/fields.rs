//! A JSON object whose members are asked for by type and kept as they are otherwise.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{SessionId, Timestamp};

/// The members of a state file, in their order.
///
/// Reading is lenient about types, because hands and other programs write these files too: each accessor says what it accepts,
/// and anything else reads as absent. Writing replaces single members and leaves the others alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// The member, whatever its type.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Whether the member is `true`, and not just something that looks like it.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Bool(true))
    }

    /// The text of a string, without surrounding space; absent if nothing is left.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// A count: a whole number from 0, or a string of up to nine digits that somebody wrote for one.
    pub fn count(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => {
                let digits = text.trim();
                let plain = digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
                plain.then(|| digits.parse().ok()).flatten()
            }
            _ => None,
        }
    }

    /// A limit: a count from 1. As for the original, 0 is none, and a default takes its place.
    pub fn limit(&self, name: &str) -> Option<u64> {
        self.count(name).filter(|limit| *limit > 0)
    }

    /// A time: RFC 3339, or a number of milliseconds since 1970.
    pub fn time(&self, name: &str) -> Option<Timestamp> {
        match self.get(name)? {
            Value::String(text) => text.trim().parse().ok(),
            Value::Number(number) => number.as_i64().map(Timestamp::from_epoch_ms),
            _ => None,
        }
    }

    /// The object in a member.
    pub(crate) fn object(&self, name: &str) -> Option<Fields> {
        self.get(name)?.as_object().map(|object| Fields(object.clone()))
    }

    /// The objects in a member that is an array; other items are left out.
    pub(crate) fn objects(&self, name: &str) -> impl Iterator<Item = Fields> + '_ {
        self.get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|item| item.as_object().map(|object| Fields(object.clone())))
    }

    /// Whether `session_id` is exactly this session's.
    pub fn belongs_to(&self, session: &SessionId) -> bool {
        self.get("session_id").and_then(Value::as_str) == Some(session.as_str())
    }

    /// Sets a member; a new one goes to the end.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Sets a member to a time.
    pub fn set_time(&mut self, name: &str, time: Timestamp) {
        self.set(name, time.to_string());
    }

    /// Removes a member, keeping the others' order.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.0.shift_remove(name)
    }

    /// Whether lists and objects are nested more than `levels` deep, this object not counted.
    pub(crate) fn is_deeper_than(&self, levels: usize) -> bool {
        fn is_deeper(value: &Value, levels: usize) -> bool {
            match value {
                Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
                Value::Object(members) => levels == 0 || members.values().any(|member| is_deeper(member, levels - 1)),
                _ => false,
            }
        }
        self.0.values().any(|member| is_deeper(member, levels))
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.get_mut(name)
    }
}

impl From<Map<String, Value>> for Fields {
    fn from(members: Map<String, Value>) -> Self {
        Self(members)
    }
}

impl From<Fields> for Map<String, Value> {
    fn from(fields: Fields) -> Self {
        fields.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;
    use serde_json::json;

    #[test]
    fn a_count_of_the_wrong_type_is_repaired_or_absent() {
        for (value, count) in [
            (json!(7), Some(7)),
            (json!(0), Some(0)),
            (json!("7"), Some(7)),
            (json!(" 42 "), Some(42)),
            (json!(-1), None),
            (json!(1.5), None),
            (json!("-1"), None),
            (json!("seven"), None),
            (json!(""), None),
            (json!("9999999999"), None),
            (json!(null), None),
            (json!(true), None),
            (json!([7]), None),
            (json!({"n": 7}), None),
        ] {
            assert_eq!(fields(json!({"iteration": value})).count("iteration"), count, "{value}");
        }
        assert_eq!(fields(json!({})).count("iteration"), None);
        for (value, limit) in
            [(json!(7), Some(7)), (json!("7"), Some(7)), (json!(0), None), (json!("0"), None), (json!(-1), None)]
        {
            assert_eq!(fields(json!({"max": value})).limit("max"), limit, "{value}");
        }
    }

    #[test]
    fn only_true_is_true() {
        for (value, flag) in [
            (json!(true), true),
            (json!(false), false),
            (json!("true"), false),
            (json!(1), false),
            (json!(null), false),
        ] {
            assert_eq!(fields(json!({"active": value})).flag("active"), flag, "{value}");
        }
    }

    #[test]
    fn a_time_is_text_or_milliseconds() {
        let time = Some(Timestamp::from_epoch_ms(1_796_048_880_123));
        assert_eq!(fields(json!({"t": "2026-11-30T14:28:00.123Z"})).time("t"), time);
        assert_eq!(fields(json!({"t": 1_796_048_880_123_i64})).time("t"), time);
        for value in [json!("yesterday"), json!(""), json!(null), json!(1.5), json!([]), json!({})] {
            assert_eq!(fields(json!({"t": value})).time("t"), None, "{value}");
        }
    }

    #[test]
    fn an_owner_is_compared_exactly() {
        let session = SessionId::parse("s1").expect("an id");
        for (value, own) in [
            (json!("s1"), true),
            (json!("S1"), false),
            (json!(" s1"), false),
            (json!("s2"), false),
            (json!(""), false),
            (json!("unknown"), false),
            (json!(null), false),
            (json!(["s1"]), false),
        ] {
            assert_eq!(fields(json!({"session_id": value})).belongs_to(&session), own, "{value}");
        }
        assert!(!fields(json!({})).belongs_to(&session));
    }

    #[test]
    fn other_members_keep_their_place_and_value() {
        let mut edited = fields(json!({"z": [1], "flag": true, "a": {"b": null}}));
        edited.remove("flag");
        edited.set("a", 2);
        edited.set("new", "x");
        assert_eq!(serde_json::to_string(&edited).expect("JSON"), r#"{"z":[1],"a":2,"new":"x"}"#);
    }
}
