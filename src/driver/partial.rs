//! Plans that leave something out. Newer versions of Terraform say so in the plan; of the others only the
//! command line tells.

use std::ffi::OsString;

/// Options with which a plan leaves something out.
const PARTIAL: [&str; 4] = ["target", "target-file", "exclude", "exclude-file"];

/// Variables whose words Terraform adds to those of `plan`.
const VARIABLES: [&str; 2] = ["TF_CLI_ARGS", "TF_CLI_ARGS_plan"];

/// Returns whether a `plan` of Terraform or its kin with these arguments leaves something out. `variable` has
/// the environment of the command.
pub fn leaves_out(arguments: &[OsString], variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let more = VARIABLES.into_iter().filter_map(variable);
    let more = more.flat_map(|text| shell_words::split(&text).unwrap_or_default());
    let written = arguments.iter().map(|it| it.to_string_lossy().into_owned());
    written.chain(more).any(|word| {
        let option = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
        let name = option.and_then(|option| option.split('=').next());
        name.is_some_and(|name| PARTIAL.contains(&name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_or_a_variable_tells_that_something_is_left_out() {
        let cases = [
            ("plan -input=false -out=x", "", false),
            ("plan -target=a.b", "", true),
            ("plan --target a.b", "", true),
            ("plan -exclude=a.b", "", true),
            ("plan -var target=x -targets", "", false),
            ("plan", "-lock=false '-target=a[\"b\"]'", true),
            ("plan", "-var=x=-target", false),
        ];
        for (line, added, expected) in cases {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            for name in VARIABLES {
                let variable = |asked: &str| (asked == name).then(|| added.to_owned());
                assert_eq!(
                    leaves_out(&arguments, &variable),
                    expected,
                    "{line} {added}"
                );
            }
        }
        let apply = |asked: &str| (asked == "TF_CLI_ARGS_apply").then(|| "-target=a".to_owned());
        assert!(!leaves_out(&["plan".into()], &apply));
    }
}
