//! Ralph with a PRD: every story that is said to pass is confirmed by a reviewer, then the whole; only then is ralph done.

use omc_state::{Critic, MAX_VERIFICATION_ATTEMPTS, Prd, Scope, Verification};

use super::{reason, rules::Case};

/// Reminders of an open request after which it is withdrawn: the reviewer does not come, and the work goes on without it.
const MAX_REMINDERS: u64 = 10;

/// What ralph does next.
pub(super) enum Step {
    /// It is done: the whole is confirmed.
    Done,
    /// It waits for a reviewer, who was asked before: no new iteration.
    Remind { text: String, verification: Verification },
    /// It asks a reviewer.
    Ask { text: String, verification: Verification },
    /// It works on; with a word about the stories, if there are any.
    Work { hint: Option<String>, verification: Option<Verification> },
}

/// The next step.
pub(super) fn next(case: &Case<'_>) -> Step {
    let before = &case.session.verification;
    let mut verification = before.clone();
    let mut hint = None;
    if let Some((id, scope)) = before.request(case.now) {
        let critic = Critic::of(case.state);
        let story = match &scope {
            Scope::Story(story) => Some(reason::name(story)),
            Scope::Completion => None,
        };
        let answer = case.facts.reviews.iter().rev().find(|review| review.answers(id, story.as_deref(), critic));
        match (answer, &scope) {
            (Some(review), Scope::Completion) if review.approves => return Step::Done,
            (Some(review), Scope::Story(story)) if review.approves => verification.confirm(story),
            (Some(review), _) if before.rejections() + 1 < MAX_VERIFICATION_ATTEMPTS => {
                verification.count_rejection(&case.facts.fresh_id);
                let request = reason::Request { id: &case.facts.fresh_id, scope: &scope, critic };
                let attempt = verification.rejections() + 1;
                let text = reason::review_again(&request, attempt, &review.feedback);
                return Step::Ask { text, verification };
            }
            (Some(review), _) => {
                verification.close();
                hint = Some(reason::review_failed(&review.feedback));
            }
            (None, _) if before.reminders() < MAX_REMINDERS => {
                verification.count_reminder();
                let request = reason::Request { id, scope: &scope, critic };
                return Step::Remind { text: reason::review(&request, before.rejections() + 1), verification };
            }
            (None, _) => {
                verification.close();
                hint = Some(reason::no_review());
            }
        }
    }
    if hint.is_none()
        && let Some(prd) = &case.session.prd
    {
        match open_claim(prd, &verification) {
            Some(scope) => {
                verification.ask(&case.facts.fresh_id, &scope, case.state, case.now);
                let request =
                    reason::Request { id: &case.facts.fresh_id, scope: &scope, critic: Critic::of(case.state) };
                return Step::Ask { text: reason::review(&request, 1), verification };
            }
            None => hint = next_story(prd, &verification),
        }
    }
    Step::Work { hint, verification: (verification != *before).then_some(verification) }
}

/// What is said to be done and not confirmed.
fn open_claim(prd: &Prd, verification: &Verification) -> Option<Scope> {
    let is_open = |story: &&omc_state::Story| !story.is_verified && !verification.confirms(&story.id);
    if let Some(story) = prd.stories.iter().find(|story| story.passes && is_open(story)) {
        return Some(Scope::Story(story.id.clone()));
    }
    prd.stories.iter().all(|story| story.passes).then_some(Scope::Completion)
}

fn next_story(prd: &Prd, verification: &Verification) -> Option<String> {
    let confirmed = prd.stories.iter().filter(|story| story.is_verified || verification.confirms(&story.id)).count();
    let next = prd.stories.iter().find(|story| !story.passes)?;
    Some(reason::next_story(&next.id, &next.title, confirmed, prd.stories.len()))
}
