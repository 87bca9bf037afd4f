//! Which functions policies may call.
//!
//! A policy is a function of its input: the same input gives the same answer, tomorrow and on another
//! machine. So functions that depend on anything else are refused.

use regorus::unstable::BUILTINS;

/// The functions of the language that policies may call, in order.
const ALLOWED: &str = "\
    abs array.concat array.flatten array.reverse array.slice base64.decode base64.encode \
    base64.is_valid base64url.decode base64url.encode base64url.encode_no_pad bits.and bits.negate \
    bits.or bits.xor ceil concat contains count crypto.hmac.md5 crypto.hmac.sha1 crypto.hmac.sha256 \
    crypto.hmac.sha512 crypto.md5 crypto.sha1 crypto.sha256 endswith floor format_int glob.match \
    glob.quote_meta graph.reachable graph.reachable_paths hex.decode hex.encode indexof indexof_n \
    intersection is_array is_boolean is_null is_number is_object is_set is_string json.filter \
    json.is_valid json.marshal json.patch json.remove json.unmarshal lower max min \
    net.cidr_contains net.cidr_expand net.cidr_is_valid numbers.range numbers.range_step \
    object.filter object.get object.keys object.remove object.subset object.union object.union_n \
    print product regex.find_all_string_submatch_n regex.find_n regex.is_valid regex.match \
    regex.replace regex.split regex.template_match replace round semver.compare semver.is_valid set \
    sort split sprintf startswith strings.any_prefix_match strings.any_suffix_match strings.count \
    strings.replace_n strings.reverse substring sum time.clock time.date time.diff time.format \
    time.parse_duration_ns time.parse_rfc3339_ns time.weekday to_number trace trim trim_left \
    trim_prefix trim_right trim_space trim_suffix type_name union upper urlquery.decode \
    urlquery.decode_object urlquery.encode urlquery.encode_object walk yaml.is_valid";

/// The functions among them that the library lacks, with the numbers of their parameters.
const ADDED: [(&str, usize); 8] = [
    ("array.flatten", 1),
    ("crypto.hmac.md5", 2),
    ("crypto.hmac.sha1", 2),
    ("crypto.hmac.sha256", 2),
    ("crypto.hmac.sha512", 2),
    ("crypto.md5", 1),
    ("crypto.sha1", 1),
    ("crypto.sha256", 1),
];

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
    ALLOWED.split(' ').any(|allowed| allowed == name)
}

/// Returns how many arguments a function of the library has. One more is the pattern that its value has to match.
pub(super) fn n_parameters(name: &str) -> Option<usize> {
    if let Some((_, n_parameters)) = ADDED.iter().find(|(added, _)| *added == name) {
        return Some(*n_parameters);
    }
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
        let known = |name: &str| {
            BUILTINS.contains_key(name)
                || ADDED.iter().any(|(added, _)| *added == name)
                || ["print", "set"].contains(&name)
        };
        let unknown: Vec<_> = ALLOWED.split(' ').filter(|name| !known(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
