//! What a stage has to deliver, and what is missing. Pure: a table and texts in, issues out.

use omc_state::{Fields, one_line};
use regex_lite::RegexBuilder;
use serde_json::Value;

/// Shortest deliverable, in bytes, where the table does not say: the original's.
const DEFAULT_MIN_BYTES: u64 = 200;

/// Most files of a stage, and most requirements of each, that are looked at.
const MAX_FILES: usize = 16;
const MAX_REQUIREMENTS: usize = 16;

/// Longest name that is repeated, in UTF-16 units.
const MAX_NAME_UNITS: usize = 80;

/// Largest program that a pattern may become, in bytes.
const MAX_PATTERN_BYTES: usize = 64 * 1024;

/// A deliverable's file, as far as it could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// There is none.
    Missing,
    /// Its text.
    Text(String),
    /// There is one that is not to be read: too large, or no plain file. Its contents are taken on trust.
    Unread,
}

/// What a stage has to deliver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stage {
    files: Vec<String>,
    min_bytes: u64,
    patterns: Vec<String>,
    sections: Vec<String>,
}

impl Stage {
    /// The stage in the project's table, else in ours; absent if neither knows it.
    pub fn find(table: Option<&Fields>, stage: &str) -> Option<Self> {
        let of_project = table.and_then(|table| Self::of(table.get(stage)?));
        of_project.or_else(|| Self::default_of(stage))
    }

    fn of(value: &Value) -> Option<Self> {
        let stage = value.as_object()?;
        let texts = |name: &str, most: usize| -> Vec<String> {
            let items = stage.get(name).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).take(most).map(str::to_owned).collect()
        };
        Some(Self {
            files: texts("files", MAX_FILES),
            min_bytes: stage.get("minSize").and_then(Value::as_u64).unwrap_or(DEFAULT_MIN_BYTES),
            patterns: texts("requiredPatterns", MAX_REQUIREMENTS),
            sections: texts("requiredSections", MAX_REQUIREMENTS),
        })
    }

    fn default_of(stage: &str) -> Option<Self> {
        let (files, min_bytes, patterns, sections): (&[&str], _, &[&str], &[&str]) = match stage {
            "team-plan" => (&["DESIGN.md"], 500, &[], &["## File Ownership", "## Architecture"]),
            "team-prd" => (&["PRD.md", "TEST_STRATEGY.md"], 300, &[], &[]),
            "team-verify" => (&["QA_REPORT.md"], DEFAULT_MIN_BYTES, &[r"\b(PASS|FAIL)\b"], &[]),
            _ => return None,
        };
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        Some(Self { files: owned(files), min_bytes, patterns: owned(patterns), sections: owned(sections) })
    }

    /// What is missing, one line each.
    pub fn issues(&self, read: impl Fn(&str) -> Content) -> Vec<String> {
        self.files.iter().flat_map(|file| self.issues_of(file, &read)).collect()
    }

    fn issues_of(&self, file: &str, read: impl Fn(&str) -> Content) -> Vec<String> {
        let name = one_line(file, MAX_NAME_UNITS);
        if file.starts_with(['/', '\\', '~']) || file.split(['/', '\\']).any(|part| part == "..") {
            return vec![format!("`{name}` is not a path inside the project")];
        }
        let text = match read(file) {
            Content::Missing => return vec![format!("`{name}` is missing")],
            Content::Unread => return Vec::new(),
            Content::Text(text) => text,
        };
        let mut issues = Vec::new();
        if (text.len() as u64) < self.min_bytes {
            issues.push(format!("`{name}` has {} bytes, {} are expected", text.len(), self.min_bytes));
        }
        for section in self.sections.iter().filter(|section| !text.contains(section.as_str())) {
            issues.push(format!("`{name}` lacks the section `{}`", one_line(section, MAX_NAME_UNITS)));
        }
        for pattern in &self.patterns {
            // A pattern that is none asks for nothing.
            let built = RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build();
            if built.is_ok_and(|pattern| !pattern.is_match(&text)) {
                issues.push(format!("`{name}` does not match `{}`", one_line(pattern, MAX_NAME_UNITS)));
            }
        }
        issues
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn issues(table: Value, stage: &str, content: &Content) -> Option<Vec<String>> {
        let table: Option<Fields> = serde_json::from_value(table).ok();
        Some(Stage::find(table.as_ref(), stage)?.issues(|_| content.clone()))
    }

    #[test]
    fn the_known_stages_have_their_deliverables() {
        let text = |text: &str| Content::Text(text.to_owned());
        let design = format!("## File Ownership\n## Architecture\n{}", "x".repeat(500));
        for (stage, content, found) in [
            ("team-plan", Content::Missing, vec!["`DESIGN.md` is missing"]),
            ("team-plan", text(&design), vec![]),
            ("team-plan", Content::Unread, vec![]),
            (
                "team-plan",
                text("short"),
                vec![
                    "`DESIGN.md` has 5 bytes, 500 are expected",
                    "`DESIGN.md` lacks the section `## File Ownership`",
                    "`DESIGN.md` lacks the section `## Architecture`",
                ],
            ),
            ("team-prd", Content::Missing, vec!["`PRD.md` is missing", "`TEST_STRATEGY.md` is missing"]),
            ("team-verify", text(&"All PASS. ".repeat(30)), vec![]),
            ("team-verify", text(&"bypassed ".repeat(30)), vec![r"`QA_REPORT.md` does not match `\b(PASS|FAIL)\b`"]),
        ] {
            assert_eq!(
                issues(json!(null), stage, &content),
                Some(found.iter().map(ToString::to_string).collect()),
                "{stage}"
            );
        }
        for stage in ["team-exec", "team-fix", "other", ""] {
            assert_eq!(issues(json!(null), stage, &Content::Missing), None, "{stage}");
        }
    }

    #[test]
    fn the_projects_table_comes_first_and_its_faults_hurt_nobody() {
        let table = json!({
            "team-plan": {"files": ["A.md", "/etc/passwd", "../x", "a/../../b"], "minSize": 3, "requiredPatterns": ["(", "ok"]},
            "team-exec": {"files": "X.md"},
            "team-prd": [1],
        });
        assert_eq!(
            issues(table.clone(), "team-plan", &Content::Text("fine, ok".into())),
            Some(vec![
                "`/etc/passwd` is not a path inside the project".to_owned(),
                "`../x` is not a path inside the project".to_owned(),
                "`a/../../b` is not a path inside the project".to_owned(),
            ])
        );
        assert_eq!(issues(table.clone(), "team-exec", &Content::Missing), Some(vec![]));
        assert_eq!(issues(table, "team-prd", &Content::Missing).map(|issues| issues.len()), Some(2), "ours then");
    }

    #[test]
    fn a_hostile_table_costs_little() {
        let table = json!({"s": {
            "files": vec!["a"; 9_000], "requiredPatterns": vec!["(a{99}){99}{99}"; 900], "requiredSections": vec!["x\ny"; 900], "minSize": 0,
        }});
        let found = issues(table, "s", &Content::Text("a".repeat(100_000))).expect("a stage");
        assert!(found.len() <= MAX_FILES * 2 * MAX_REQUIREMENTS && found.iter().all(|issue| issue.len() < 300));
    }
}
