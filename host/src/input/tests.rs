use std::collections::VecDeque;
use std::fmt::Write as _;

use serde_json::json;

use super::*;

/// What a scripted writer does next. After its last step it stays silent, with the pipe open.
enum Step {
    Bytes(Vec<u8>),
    Quiet,
    End,
    Fail,
}

struct Script(VecDeque<Step>);

impl Script {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl Source for Script {
    fn ready(&mut self, _within: Duration) -> io::Result<Readiness> {
        Ok(match self.0.front() {
            None => Readiness::Quiet,
            Some(Step::Quiet) => {
                self.0.pop_front();
                Readiness::Quiet
            }
            Some(_) => Readiness::Ready,
        })
    }

    fn read_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self.0.pop_front() {
            Some(Step::Bytes(bytes)) => {
                buffer.extend_from_slice(&bytes);
                Ok(bytes.len())
            }
            Some(Step::Fail) => Err(io::Error::from_raw_os_error(9)),
            _ => Ok(0),
        }
    }
}

fn read(bytes: &[u8]) -> Result<Input, Unreadable> {
    read_event(&mut Script::new([Step::Bytes(bytes.to_vec()), Step::End]), &Limits::default())
}

fn payload(bytes: &[u8]) -> Value {
    let input = read(bytes).unwrap_or_else(|error| panic!("{error} in {}", String::from_utf8_lossy(bytes)));
    Value::Object(input.payload)
}

fn fault(result: Result<Input, Unreadable>) -> InputFault {
    result.expect_err("an unreadable event").fault
}

const EVENT: &str = "\u{feff}\r\n {\"a\": [1, {\"b\\\"}\": \"}] \\\\\"}], \"파\": \"é\\u00e9\\ud83d\\ude80\"} \n";

fn event_value() -> Value {
    json!({"a": [1, {"b\"}": "}] \\"}], "파": "éé🚀"})
}

#[test]
fn an_event_may_be_split_at_any_byte() {
    let bytes = EVENT.as_bytes();
    for at in 0..bytes.len() {
        let (head, tail) = bytes.split_at(at);
        let steps = [head, tail].into_iter().filter(|part| !part.is_empty()).map(|part| Step::Bytes(part.to_vec()));
        let input = read_event(&mut Script::new(steps), &Limits::default()).expect("an event");
        assert_eq!(Value::Object(input.payload), event_value(), "split at {at}");
        assert!(!input.repaired);
    }
    let single = bytes.iter().map(|&byte| Step::Bytes(vec![byte]));
    let input = read_event(&mut Script::new(single), &Limits::default()).expect("an event");
    assert_eq!(Value::Object(input.payload), event_value());
}

#[test]
fn the_first_complete_object_is_the_event_and_the_rest_is_read_away() {
    let rest = [r#"{"a":2}"#, " trailing", "}]\0\0", "\n\n", ""];
    for rest in rest {
        assert_eq!(payload(format!(r#"{{"a":1}}{rest}"#).as_bytes()), json!({"a": 1}), "{rest:?}");
        let mut steps = vec![Step::Bytes(br#"{"a":1}"#.to_vec()), Step::Bytes(rest.as_bytes().to_vec())];
        steps.extend((0..3).map(|_| Step::Bytes(vec![b'x'; 100_000])));
        steps.push(Step::Quiet);
        steps.push(Step::Bytes(b"too late".to_vec()));
        let mut script = Script::new(steps);
        read_event(&mut script, &Limits::default()).expect("an event");
        assert!(rest.is_empty() || script.0.len() == 1, "{rest:?} left {} steps", script.0.len());
    }
}

#[test]
fn what_is_no_event_is_a_fault_of_its_own_kind() {
    use InputFault::{Empty, Incomplete, Malformed, NotAnObject};
    let cases: &[(&[u8], InputFault)] = &[
        (b"", Empty),
        (b" \n", Empty),
        (b"\xef\xbb\xbf", Empty),
        (b"null", NotAnObject),
        (b"[]", NotAnObject),
        (b"[{}]", NotAnObject),
        (b"7", NotAnObject),
        (b"\"text\"", NotAnObject),
        (b"}", NotAnObject),
        (b"not json", NotAnObject),
        (b"\0", NotAnObject),
        (b"\xff\xfe{\0}\0", NotAnObject),
        (b"{", Incomplete),
        (b"{\"a\":", Incomplete),
        (b"{\"a\":1,\"b\":\"}", Incomplete),
        (b"{\"a\":\"\\", Incomplete),
        (b"{a:1}", Malformed),
        (b"{\"a\" 1}", Malformed),
        (b"{\"a\":}", Malformed),
        (b"{\"a\":1 \"b\":2}", Malformed),
        (b"{\"a\":[1}}", Malformed),
        (b"{\"a\":{]}", Malformed),
        (b"{]", Malformed),
        (b"{\"a\":'b'}", Malformed),
        (b"{\"a\":1,,}", Malformed),
    ];
    for (bytes, expected) in cases {
        assert_eq!(fault(read(bytes)), *expected, "{}", String::from_utf8_lossy(bytes));
    }
    assert_eq!(fault(read_event(&mut Script::new([Step::Fail]), &Limits::default())), Empty);
    assert_eq!(fault(read_event(&mut Script::new([Step::Quiet]), &Limits::default())), Empty);
    let half = [Step::Bytes(b"{\"a\":1".to_vec()), Step::Quiet, Step::Bytes(b"}".to_vec())];
    assert_eq!(fault(read_event(&mut Script::new(half), &Limits::default())), Incomplete);
}

#[test]
fn an_unreadable_event_still_tells_its_first_members() {
    let cases: &[&[u8]] = &[
        b"{\"hook_event_name\":\"Stop\",\"turn_id\":\"T\",\"last_assistant",
        b"{\"hook_event_name\":\"Stop\",\"turn_id\":\"T\",\"deep\":[[[{\"a\":",
        b"{\"hook_event_name\":\"Stop\",\"turn_id\":\"T\",\"bad\":[1}}",
    ];
    for bytes in cases {
        let error = read(bytes).expect_err("an unreadable event");
        assert_eq!(Value::Object(error.partial), json!({"hook_event_name": "Stop", "turn_id": "T"}));
    }
}

#[test]
fn an_event_over_the_limit_is_read_to_its_end_and_not_kept() {
    let limits = Limits { max_bytes: 100_000, ..Limits::default() };
    let event = format!(r#"{{"hook_event_name":"Stop","x":"{}"}}"#, "}".repeat(1_000_000));
    let chunks = event.as_bytes().chunks(7_777).map(|chunk| Step::Bytes(chunk.to_vec()));
    let mut script = Script::new(chunks.chain([Step::Bytes(b"\n".to_vec())]));
    let error = read_event(&mut script, &limits).expect_err("too large");
    assert_eq!(error.fault, InputFault::TooLarge { limit: 100_000 });
    assert_eq!(Value::Object(error.partial), json!({"hook_event_name": "Stop"}));
    assert!(script.0.is_empty());

    // At the limit it is an event; a byte more, even within one read, is not.
    let event = format!(r#"{{"x":"{}"}}"#, "y".repeat(92));
    for (max_bytes, is_read) in [(100, true), (99, false)] {
        let limits = Limits { max_bytes, ..Limits::default() };
        let mut script = Script::new([Step::Bytes(format!("  {event}  ").into_bytes())]);
        assert_eq!(read_event(&mut script, &limits).is_ok(), is_read, "{max_bytes}");
    }
}

#[test]
fn a_writer_that_drips_is_left_after_the_total_time() {
    struct Drip;
    impl Source for Drip {
        fn ready(&mut self, _within: Duration) -> io::Result<Readiness> {
            Ok(Readiness::Ready)
        }
        fn read_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
            std::thread::sleep(Duration::from_millis(1));
            buffer.push(b'{');
            Ok(1)
        }
    }
    let limits = Limits { total: Duration::from_millis(30), drain: Duration::from_millis(30), ..Limits::default() };
    let started = Instant::now();
    assert_eq!(fault(read_event(&mut Drip, &limits)), InputFault::Incomplete);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn what_is_plain_to_read_is_repaired() {
    let cases: &[(&[u8], Value)] = &[
        (b"{\"a\":\"x\x01y\ttab\nline\0nul\"}", json!({"a": "x\u{1}y\ttab\nline\0nul"})),
        (b"{\"a\":\"\xff\xfe and \xc3\"}", json!({"a": "\u{fffd}\u{fffd} and \u{fffd}"})),
        (b"{\"a\":\"\xed\xa0\x80\"}", json!({"a": "\u{fffd}\u{fffd}\u{fffd}"})),
        (b"{\"a\xff\":1}", json!({"a\u{fffd}": 1})),
        (br#"{"a":"\ud800 x"}"#, json!({"a": "\u{fffd} x"})),
        (br#"{"a":"\udc00\ud83d\ude80\ud83d"}"#, json!({"a": "\u{fffd}🚀\u{fffd}"})),
        (br#"{"a":"\ud800\ud83d\ude80"}"#, json!({"a": "\u{fffd}🚀"})),
        (br#"{"a":"\ud800A\ud800\n"}"#, json!({"a": "\u{fffd}A\u{fffd}\n"})),
        (br#"{"a":"C:\Users\me"}"#, json!({"a": r"C:\Users\me"})),
        (br#"{"a":"\e[31mred\x41\uZZZZ\u12"}"#, json!({"a": r"\e[31mred\x41\uZZZZ\u12"})),
        (b"{\"a\":\"\\\xff\"}", json!({"a": "\\\u{fffd}"})),
        (br#"{"a":"\q \"quoted\" \\ \/ \b\f\n\r\t\u0041"}"#, json!({"a": "\\q \"quoted\" \\ / \u{8}\u{c}\n\r\tA"})),
        (br#"{"a":1e400,"b":-1e400,"c":2}"#, json!({"a": null, "b": null, "c": 2})),
        (br#"{"a":NaN,"b":-Infinity,"c":01,"d":undefined}"#, json!({"a": null, "b": null, "c": null, "d": null})),
        (
            br#"{"a":NaN,"b":true,"c":false,"d":null,"e":-2.5e1}"#,
            json!({"a": null, "b": true, "c": false, "d": null, "e": -25.0}),
        ),
        (br#"{"a":[1,2,],"b":{"c":1,},}"#, json!({"a": [1, 2], "b": {"c": 1}})),
        (br#"{"a":1e999,"a":[],"a":"last"}"#, json!({"a": "last"})),
        (b"\xef\xbb\xbf{\"a\":NaN}", json!({"a": null})),
    ];
    for (bytes, expected) in cases {
        assert_eq!(payload(bytes), *expected, "{}", String::from_utf8_lossy(bytes));
        assert!(read(bytes).expect("an event").repaired);
    }
}

#[test]
fn a_proper_event_is_not_repaired() {
    let cases: &[(&str, Value)] = &[
        ("{}", json!({})),
        (r#"{"a":1,"b":2,"a":3}"#, json!({"a": 3, "b": 2})),
        (r#"{"a":"\u0000\u001b"}"#, json!({"a": "\0\u{1b}"})),
        (
            r#"{"a":123456789012345678901234567890,"b":-1e-9999}"#,
            json!({"a": 123_456_789_012_345_678_901_234_567_890_f64, "b": -0.0}),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(payload(text.as_bytes()), *expected, "{text}");
        assert!(!read(text.as_bytes()).expect("an event").repaired, "{text}");
    }
}

#[test]
fn both_parsers_read_a_proper_event_alike() {
    let texts = [
        EVENT.trim_start_matches('\u{feff}'),
        r#"{"a":[],"b":{},"c":[[],{}],"d":-0.5E+2,"e":"","":[null,true,false]}"#,
    ];
    for text in texts {
        let strict: Value = serde_json::from_str(text).expect("proper JSON");
        let lenient = repair::parse(text.trim().as_bytes(), MAX_VALUES).expect("an object");
        assert_eq!(Value::Object(lenient), strict);
    }
}

#[test]
fn depth_costs_no_stack_and_hides_nothing_beside_it() {
    for depth in [100, 200, 10_000, 1_000_000] {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let core = if open == "[" { "" } else { "1" };
            let deep = format!("{}{core}{}", open.repeat(depth), close.repeat(depth));
            let event = format!(r#"{{"before":1,"deep":{deep},"after":2}}"#);
            let payload = payload(event.as_bytes());
            assert_eq!((&payload["before"], &payload["after"]), (&json!(1), &json!(2)), "{depth} times {open}");
            // Writing it out recurses as deep as the value: it must not overflow a small stack.
            let write = move || serde_json::to_string(&payload).is_ok();
            let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(write).expect("a thread");
            assert!(thread.join().expect("no overflow"));
        }
    }
    assert_eq!(fault(read("{\"a\":[".repeat(100_000).as_bytes())), InputFault::Incomplete);
}

#[test]
fn many_small_values_do_not_become_many_gigabytes() {
    let mut event = String::from(r#"{"tool_name":"Bash","x":["#);
    event.push_str(&"0,".repeat(MAX_VALUES + 1_000));
    event.push_str(r#"[1]],"y":[[],[]],"tool_input":"ls""#);
    for member in 0..MAX_MEMBERS_SEEN {
        write!(event, r#","m{member}":0"#).expect("a string takes everything");
    }
    event.push('}');
    let input = read(event.as_bytes()).expect("an event");
    assert!(input.repaired);
    assert!(input.payload["x"].as_array().expect("an array").len() <= MAX_VALUES);
    assert_eq!(input.payload["tool_name"], "Bash");
    assert_eq!(input.payload["tool_input"], "ls");
    assert!(input.payload.len() < MAX_MEMBERS_SEEN);
}

/// More top-level members than any parser of ours keeps of an event with too many values.
const MAX_MEMBERS_SEEN: usize = 10_000;

#[test]
fn diagnostics_hold_no_payload() {
    let input = read(br#"{"prompt":"secret"}"#).expect("an event");
    let error = read(br#"{"prompt":"secret","#).expect_err("half an event");
    for text in [format!("{input:?}"), format!("{error:?}"), format!("{error}")] {
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn a_blocking_reader_gives_the_same_event() {
    for bytes_a_read in [1, 7, 1 << 20] {
        let reader = Slow { bytes: EVENT.as_bytes(), bytes_a_read };
        let input = read_event(&mut Blocking(reader), &Limits::default()).expect("an event");
        assert_eq!(Value::Object(input.payload), event_value());
    }
}

struct Slow<'a> {
    bytes: &'a [u8],
    bytes_a_read: usize,
}

impl io::Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.bytes_a_read.min(buffer.len()).min(self.bytes.len());
        let (head, tail) = self.bytes.split_at(length);
        buffer[..length].copy_from_slice(head);
        self.bytes = tail;
        Ok(length)
    }
}

#[cfg(unix)]
mod pipes {
    use std::io::Write as _;
    use std::thread;

    use super::*;

    fn limits() -> Limits {
        Limits { quiet: Duration::from_millis(100), ..Limits::default() }
    }

    #[test]
    fn an_open_pipe_does_not_hold_up_a_complete_event() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(EVENT.as_bytes()).expect("room in the pipe");
        let started = Instant::now();
        let limits = Limits { quiet: Duration::from_mins(1), total: Duration::from_mins(1), ..Limits::default() };
        let input = read_event(&mut Descriptor(&reader), &limits).expect("an event");
        assert_eq!(Value::Object(input.payload), event_value());
        assert!(started.elapsed() < Duration::from_secs(30));
        drop(writer);
    }

    #[test]
    fn a_silent_pipe_is_left_after_a_short_wait() {
        for (bytes, expected) in [(&b""[..], InputFault::Empty), (b"{\"a\":", InputFault::Incomplete)] {
            let (reader, mut writer) = io::pipe().expect("a pipe");
            writer.write_all(bytes).expect("room in the pipe");
            let started = Instant::now();
            assert_eq!(fault(read_event(&mut Descriptor(&reader), &limits())), expected);
            assert!(started.elapsed() >= Duration::from_millis(100));
            drop(writer);
        }
    }

    #[test]
    fn megabytes_arrive_whole_and_their_writer_gets_no_broken_pipe() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let text = "é".repeat(3 << 20);
        let event = format!("{{\"x\":\"{text}\"}}\n");
        let writer = thread::spawn(move || writer.write_all(event.as_bytes()));
        let input = read_event(&mut Descriptor(&reader), &Limits::default()).expect("an event");
        assert_eq!(input.payload["x"].as_str(), Some(text.as_str()));
        drop(reader);
        writer.join().expect("a writer").expect("no broken pipe");
    }
}
