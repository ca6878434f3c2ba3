//! The state with which a mode starts.

use omc_state::{Mode, ModeState, NewMode};

/// How a mode starts, beside what every state is made from.
#[derive(Debug, Clone, Copy)]
pub struct Activation<'a> {
    /// Who asks, for what, and when.
    pub start: NewMode<'a>,
    /// Ralph's first limit of iterations.
    pub max_iterations: u64,
    /// Ultrawork only comes along with ralph and ends with it.
    pub with_ralph: bool,
}

/// The state of `mode` from now on, given the one that is there.
///
/// The same request for a mode that is at work goes on where it is, with its counters: a prompt sent twice is no new task.
/// Anything else starts over.
pub fn activate(mode: Mode, existing: Option<ModeState>, activation: &Activation<'_>) -> ModeState {
    let Activation { start, max_iterations, with_ralph } = activation;
    let mut new = ModeState::new(mode, start);
    if let Some(mut state) = existing.filter(|state| state.is_live(start.now) && state.prompt() == new.prompt()) {
        if start.awaiting_confirmation && state.fields().get("awaiting_confirmation").is_some() {
            state.fields_mut().set_time("awaiting_confirmation_set_at", start.now);
            state.fields_mut().set_time("last_checked_at", start.now);
        } else {
            state.confirm(start.now);
        }
        return state;
    }
    match mode {
        Mode::Ralph => new.fields_mut().set("max_iterations", *max_iterations),
        Mode::Ultrawork if *with_ralph => new.fields_mut().set("linked_to_ralph", true),
        _ => {}
    }
    new
}

#[cfg(test)]
mod tests {
    use omc_state::{Mode, ModeState, NewMode, SessionId, Timestamp};

    use super::{Activation, activate};

    const NOW: i64 = 1_800_000_000_000;
    const MINUTE: i64 = 60_000;

    fn activation<'a>(session: &'a SessionId, prompt: &'a str, awaiting: bool) -> Activation<'a> {
        let now = Timestamp::from_epoch_ms(NOW);
        let start = NewMode { session, prompt, project_path: Some("/p"), awaiting_confirmation: awaiting, now };
        Activation { start, max_iterations: 100, with_ralph: false }
    }

    /// Ralph at iteration 37, started `age` milliseconds ago.
    fn at_work(session: &SessionId, age: i64) -> ModeState {
        let mut earlier = activation(session, "port the parser", true);
        earlier.start.now = Timestamp::from_epoch_ms(NOW - age);
        let mut state = activate(Mode::Ralph, None, &earlier);
        state.fields_mut().set("iteration", 37);
        state
    }

    #[test]
    fn only_the_same_request_for_a_mode_at_work_keeps_its_counters() {
        let session = SessionId::parse("s1").expect("an id");
        let ended = |mut state: ModeState| {
            state.end("cancelled", Timestamp::from_epoch_ms(NOW));
            state
        };
        for (what, existing, prompt, iteration) in [
            ("nothing there", None, "port the parser", 1),
            ("the same request", Some(at_work(&session, MINUTE)), "port the parser", 37),
            ("another request", Some(at_work(&session, MINUTE)), "fix the queue", 1),
            ("a mode that has ended", Some(ended(at_work(&session, MINUTE))), "port the parser", 1),
            ("a stale mode", Some(at_work(&session, 180 * MINUTE)), "port the parser", 1),
        ] {
            let state = activate(Mode::Ralph, existing, &activation(&session, prompt, true));
            assert_eq!(state.fields().count("iteration"), Some(iteration), "{what}");
            assert!(state.is_active() && state.is_awaiting_confirmation(Timestamp::from_epoch_ms(NOW)), "{what}");
        }
    }

    #[test]
    fn what_was_confirmed_stays_so_and_a_command_confirms() {
        let session = SessionId::parse("s1").expect("an id");
        let now = Timestamp::from_epoch_ms(NOW);
        let mut confirmed = at_work(&session, MINUTE);
        confirmed.confirm(now);
        let state = activate(Mode::Ralph, Some(confirmed), &activation(&session, "port the parser", true));
        assert!(!state.is_awaiting_confirmation(now));
        let state =
            activate(Mode::Ralph, Some(at_work(&session, MINUTE)), &activation(&session, "port the parser", false));
        assert!(!state.is_awaiting_confirmation(now));
        assert_eq!(state.fields().count("iteration"), Some(37));
    }

    #[test]
    fn ralph_takes_its_limit_from_the_settings_and_ultrawork_its_link() {
        let session = SessionId::parse("s1").expect("an id");
        let mut with_ralph = activation(&session, "x", true);
        with_ralph.max_iterations = 7;
        with_ralph.with_ralph = true;
        assert_eq!(activate(Mode::Ralph, None, &with_ralph).fields().count("max_iterations"), Some(7));
        assert!(activate(Mode::Ultrawork, None, &with_ralph).fields().flag("linked_to_ralph"));
        assert!(!activate(Mode::Ultrawork, None, &activation(&session, "x", true)).fields().flag("linked_to_ralph"));
    }
}
