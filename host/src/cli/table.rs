//! Tables for people.

use comfy_table::{ContentArrangement, Table, presets};

use crate::text;

/// A table with these headings, plain enough to be read by `cut` as well. Texts are made inert: they come from guests.
pub(super) fn table<const N: usize>(headings: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.map(str::to_owned));
    for row in rows {
        // A line break is the table's own and separates entries of a cell.
        table.add_row(row.map(|cell| cell.lines().map(text::inert).collect::<Vec<_>>().join("\n")));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}
