//! Sizes for people.

pub(super) fn bytes(number: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, shift) in units {
        if number >> shift > 0 {
            let tenths = (number >> (shift - 10)) * 10 / 1024;
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{number} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_precision_that_people_want() {
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(5 << 30), "5.0 GiB");
    }
}
