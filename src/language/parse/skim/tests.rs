use super::*;

#[test]
fn plain_content_can_wait() {
    for content in [
        "",
        "  ",
        "\n",
        "\n  a = 1\n",
        "\n  # what it is for\n\n  a = \"x\" # why\n  b = -1.5 // and more\n",
        "\n  a = [\n    1, # one\n    2,\n  ]\n",
        "\n  a = {\n    b   = 1\n    \"c d\" = [true, null], e : 2 }\n",
        "\n  a = \"${global.b[\"c\"].d[0]}-x\\n\"\n",
        "\n  a = tm_merge({ b = 1 }, global.c[*].d)\n",
        "\n  a = [for k, v in global.b : upper(v) if v != \"\"]\n",
        "\n  a = { for v in global.b : v.id => v }\n",
        "\n  a = b ? (c + 1) * 2 : !d && e <= 3\n  c = unset\n",
    ] {
        let text = format!("stack {{\n}}\n\nglobals \"x\" {{{content}}}\nimport {{\n}}\n");
        let found = globals(FileId::UNPLACED, &text);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(&text[found[0].block.content.range()], content);
    }
}

#[test]
fn anything_else_goes_to_the_parser() {
    for content in [
        " a = 1 ",
        "\n  a = 1",
        "\n  a = 1 b = 2\n",
        "\n  a =\n",
        "\n  a = = 1\n",
        "\n  a = 1\n  a = 2\n",
        "\n  a = { b = 1, b = 2 }\n",
        "\n  a = [1 2]\n",
        "\n  a = (1\n",
        "\n  a = \"x\n\"\n",
        "\n  a = \"\\x\"\n",
        "\n  a = \"%{ if b }c%{ endif }\"\n",
        "\n  a = <<E\n}\nE\n",
        "\n  a = 1e400\n",
        "\n  a = 1.\n",
        "\n  a = for\n",
        "\n  map \"a\" {\n  }\n",
        "\r\n  a = 1\r\n",
    ] {
        let text = format!("globals {{{content}}}\n");
        assert!(globals(FileId::UNPLACED, &text).is_empty(), "{text}");
    }
}

#[test]
fn names_and_their_places_are_those_that_the_parser_finds() {
    let text = "# a\n globals\"é\" b-1 {\n}\n\nglobals {\n}";
    let found = globals(FileId::UNPLACED, text);
    let shown = |name: &Name| (name.text.to_string(), &text[name.span.range()]);
    let names: Vec<_> = found
        .iter()
        .flat_map(|it| std::iter::once(&it.block.kind).chain(&it.block.labels))
        .map(shown)
        .collect();
    let expected = [
        ("globals", "globals"),
        ("é", "\"é\""),
        ("b-1", "b-1"),
        ("globals", "globals"),
    ];
    assert_eq!(
        names,
        expected.map(|(name, place)| (name.to_owned(), place))
    );
    let ranges: Vec<&str> = found.iter().map(|it| &text[it.range.clone()]).collect();
    assert_eq!(ranges, ["globals\"é\" b-1 {\n}\n", "globals {\n}"]);
}
