//! Which functions policies may call.
//!
//! A policy is a function of its input: the same input gives the same answer, tomorrow and on another
//! machine. So functions that depend on anything else are refused.

use regorus::unstable::BUILTINS;

/// The functions of the language that policies may call, in order, each with the types of its arguments and of its
/// result: `n` for a number, `s` for a string and so on, as `RegoType::of_letter` has them. `*` takes anything, `-` nothing.
const ALLOWED: &str = "\
    abs n n; array.concat aa a; array.flatten a a; array.reverse a a; array.slice ann a; base64.decode s s; \
    base64.encode s s; base64.is_valid s b; base64url.decode s s; base64url.encode s s; \
    base64url.encode_no_pad s s; bits.and nn n; bits.negate n n; bits.or nn n; bits.xor nn n; ceil n n; \
    concat sL s; contains ss b; count C n; crypto.hmac.md5 ss s; crypto.hmac.sha1 ss s; \
    crypto.hmac.sha256 ss s; crypto.hmac.sha512 ss s; crypto.md5 s s; crypto.sha1 s s; crypto.sha256 s s; \
    endswith ss b; floor n n; format_int nn s; glob.match sDs b; glob.quote_meta s s; graph.reachable ol t; \
    graph.reachable_paths ol t; hex.decode s s; hex.encode s s; indexof ss n; indexof_n ss R; intersection T t; \
    is_array ? b; is_boolean ? b; is_null ? b; is_number ? b; is_object ? b; is_set ? b; is_string ? b; \
    json.filter ol o; json.is_valid s b; json.marshal ? s; json.patch ?a ?; json.remove ol o; \
    json.unmarshal s ?; lower s s; max l ?; min l ?; net.cidr_contains ss b; net.cidr_expand s t; \
    net.cidr_is_valid s b; numbers.range nn R; numbers.range_step nnn R; object.filter oc o; object.get o?? ?; \
    object.keys o t; object.remove oc o; object.subset cc b; object.union oo o; object.union_n a o; print * b; \
    product N n; regex.find_all_string_submatch_n ssn a; regex.find_n ssn S; regex.is_valid s b; \
    regex.match ss b; regex.replace sss s; regex.split ss S; regex.template_match ssss b; replace sss s; \
    round n n; semver.compare ss n; semver.is_valid ? b; set - t; sort l a; split ss S; sprintf sa s; \
    startswith ss b; strings.any_prefix_match PP b; strings.any_suffix_match PP b; strings.count ss n; \
    strings.replace_n os s; strings.reverse s s; substring snn s; sum N n; time.clock d R; time.date d R; \
    time.diff dd R; time.format d s; time.parse_duration_ns s n; time.parse_rfc3339_ns s n; time.weekday d s; \
    to_number v n; trace s b; trim ss s; trim_left ss s; trim_prefix ss s; trim_right ss s; trim_space s s; \
    trim_suffix ss s; type_name ? s; union T t; upper s s; urlquery.decode s s; urlquery.decode_object s o; \
    urlquery.encode s s; urlquery.encode_object o s; walk ? ?; yaml.is_valid s b";

/// Functions that are refused, and why: what they do.
const REFUSED: [(&str, &str); 17] = [
    ("bits.lsh", DIFFERENT),
    ("bits.rsh", DIFFERENT),
    ("http.send", "accesses the network"),
    ("json.marshal_with_options", DIFFERENT),
    ("net.lookup_ip_addr", "accesses the network"),
    ("opa.runtime", "reads the environment"),
    ("rand.intn", "is random"),
    ("test.sleep", "waits"),
    ("time.add_date", DIFFERENT),
    ("time.now_ns", "reads the clock"),
    ("time.parse_ns", DIFFERENT),
    ("units.parse", DIFFERENT),
    ("units.parse_bytes", DIFFERENT),
    ("uuid.parse", DIFFERENT),
    ("uuid.rfc4122", "is random"),
    ("yaml.marshal", DIFFERENT),
    ("yaml.unmarshal", DIFFERENT),
];

const DIFFERENT: &str = "has other results here than in OPA";

/// Returns whether policies may call a function of the language.
pub(super) fn is_allowed(name: &str) -> bool {
    signatures().any(|(allowed, ..)| allowed == name)
}

fn signatures() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    ALLOWED.split("; ").map(|function| {
        let mut words = function.split(' ');
        let mut word = || words.next().unwrap_or_default();
        (word(), word(), word())
    })
}

/// Returns the letters for the types of the arguments and of the result of a function.
pub(super) fn signature(name: &str) -> Option<(&'static str, &'static str)> {
    let (_, arguments, result) = signatures().find(|(allowed, ..)| *allowed == name)?;
    match arguments {
        "*" => None,
        "-" => Some(("", result)),
        _ => Some((arguments, result)),
    }
}

/// Returns how many arguments a function of the language has. One more is the pattern that its value has to match.
pub(super) fn n_parameters(name: &str) -> Option<usize> {
    if let Some((arguments, _)) = signature(name) {
        return Some(arguments.len());
    }
    // Some are of Rego v0 only.
    let (_, n_parameters) = BUILTINS.get(name)?;
    Some(usize::from(*n_parameters))
}

/// Returns why policies may not call a function of the language, if there is a special reason.
pub(super) fn refused(name: &str) -> Option<&'static str> {
    let mut refused = REFUSED.iter();
    refused
        .find(|(other, _)| *other == name)
        .map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_library_is_either_allowed_or_refused() {
        // Operators are functions under the hood, and policies cannot name them.
        let names = BUILTINS.keys().filter(|name| !name.starts_with("__"));
        let undecided: Vec<_> = names
            .filter(|name| is_allowed(name) == refused(name).is_some())
            .collect();
        assert!(undecided.is_empty(), "{undecided:?}");
    }
}
