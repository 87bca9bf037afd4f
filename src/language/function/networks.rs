//! Functions for IP networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bigdecimal::num_bigint::BigInt;
use bigdecimal::{One, Signed, ToPrimitive};

use super::Function;
use super::arguments::{Arguments, FunctionError};
use crate::language::value::Value;

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// Returns the address with a given number within a network. Negative numbers count from the
    /// end of the network.
    cidrhost(prefix: string, hostnum: number) -> string = Eager(host),
        r#"cidrhost("10.12.112.0/20", 16)"# => r#""10.12.112.16""#;
    /// Returns the subnet mask of an IPv4 network.
    cidrnetmask(prefix: string) -> string = Eager(netmask),
        r#"cidrnetmask("172.16.0.0/12")"# => r#""255.240.0.0""#;
    /// Returns the subnet with a given number within a network. Its prefix is `newbits` bits
    /// longer.
    cidrsubnet(prefix: string, newbits: number, netnum: number) -> string = Eager(subnet),
        r#"cidrsubnet("172.16.0.0/12", 4, 2)"# => r#""172.18.0.0/16""#;
    /// Returns consecutive subnets of a network. Each `newbits` is the number of bits by which the
    /// prefix of one of them is longer.
    cidrsubnets(prefix: string, ..newbits: number) -> list(string) = Eager(subnets),
        r#"cidrsubnets("10.1.0.0/16", 4, 8)"# => r#"["10.1.0.0/20","10.1.16.0/24"]"#;
};

/// A network; the bits of the host are zero.
#[derive(Clone, Copy)]
struct Network {
    address: u128,
    length: u32,
    is_v6: bool,
}

impl Network {
    fn bits(self) -> u32 {
        if self.is_v6 { 128 } else { 32 }
    }

    fn family(self) -> &'static str {
        if self.is_v6 { "IPv6" } else { "IPv4" }
    }

    fn mask(self, length: u32) -> u128 {
        let all = u128::MAX >> (128 - self.bits());
        all & !self.hosts(length)
    }

    /// Returns the number of the last host in a network with a prefix of that many bits.
    fn hosts(self, length: u32) -> u128 {
        let host_bits = self.bits().saturating_sub(length);
        u128::MAX.checked_shr(128 - host_bits).unwrap_or(0)
    }

    /// Writes an address as Go does, which shows IPv4 addresses that are mapped to IPv6 as IPv4.
    fn show(self, address: u128) -> String {
        if self.is_v6 {
            let address = Ipv6Addr::from_bits(address);
            return match address.to_ipv4_mapped() {
                Some(mapped) => mapped.to_string(),
                None => address.to_string(),
            };
        }
        let address = u32::try_from(address).unwrap_or(u32::MAX);
        Ipv4Addr::from_bits(address).to_string()
    }
}

fn network(arguments: &Arguments) -> Result<Network, FunctionError> {
    let text = arguments.text(0);
    let wrong = |problem: &str| arguments.unfit(0, problem);
    let needed = "a network such as `10.0.0.0/8` or `fd00::/8` is needed";
    let (address, length) = text.split_once('/').ok_or_else(|| wrong(needed))?;
    let address = parse_address(address).ok_or_else(|| wrong(needed))?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let length = length
        .parse::<u32>()
        .ok()
        .filter(|it| digits && *it <= bits)
        .ok_or_else(|| {
            wrong(&format!(
                "the number after the slash must be between 0 and {bits}"
            ))
        })?;
    let (address, is_v6) = match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), false),
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            return Err(wrong("an IPv4 network must not be written as IPv6"));
        }
        IpAddr::V6(address) => (address.to_bits(), true),
    };
    let network = Network {
        address,
        length,
        is_v6,
    };
    Ok(Network {
        address: address & network.mask(length),
        ..network
    })
}

/// Parses an address. Octets are decimal, even with leading zeros.
fn parse_address(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse().ok().map(IpAddr::V6);
    }
    let octets: Option<Vec<u8>> = text
        .split('.')
        .map(|octet| {
            let digits = octet.bytes().all(|byte| byte.is_ascii_digit());
            octet.parse().ok().filter(|_| digits)
        })
        .collect();
    let octets: [u8; 4] = octets?.try_into().ok()?;
    Some(IpAddr::from(octets))
}

/// Returns an argument that must be a whole number of any size.
fn whole(arguments: &Arguments, index: usize) -> Result<BigInt, FunctionError> {
    let number = arguments.number(index);
    if !number.is_integer() {
        return Err(arguments.unfit(index, "a whole number is needed"));
    }
    Ok(number.with_scale(0).into_bigint_and_scale().0)
}

fn host(arguments: &Arguments) -> Result<Value, FunctionError> {
    let network = network(arguments)?;
    let number = whole(arguments, 1)?;
    let last = network.hosts(network.length);
    // -1 is the last address, which may be the 2^128th.
    let host = if number.is_negative() {
        let back = (-&number - BigInt::one()).to_u128();
        back.and_then(|back| last.checked_sub(back))
    } else {
        number.to_u128().filter(|host| *host <= last)
    };
    let host = host.ok_or_else(|| {
        let problem = format!(
            "`{}` has no host {number}; the last one has the number {last}",
            arguments.text(0)
        );
        FunctionError::Argument(1, problem)
    })?;
    Ok(Value::string(network.show(network.address | host)))
}

fn netmask(arguments: &Arguments) -> Result<Value, FunctionError> {
    let network = network(arguments)?;
    if network.is_v6 {
        let problem = "this is an IPv6 network, which has no netmask; an IPv4 network is needed";
        return Err(FunctionError::Argument(0, problem.to_owned()));
    }
    Ok(Value::string(network.show(network.mask(network.length))))
}

fn subnet_length(
    arguments: &Arguments,
    network: Network,
    index: usize,
    least: u32,
    most: u32,
) -> Result<u32, FunctionError> {
    let number = whole(arguments, index)?;
    let most = most.min(network.bits() - network.length);
    let bits = number.to_u32().filter(|it| (least..=most).contains(it));
    match bits {
        Some(bits) => Ok(network.length + bits),
        None => Err(FunctionError::Argument(
            index,
            format!(
                "this is {number}; the {} prefix `/{}` can be made longer by {least} to {most} bits",
                network.family(),
                network.length
            ),
        )),
    }
}

fn subnet(arguments: &Arguments) -> Result<Value, FunctionError> {
    let network = network(arguments)?;
    let length = subnet_length(arguments, network, 1, 0, 128)?;
    let number = whole(arguments, 2)?;
    let added = length - network.length;
    let last = u128::MAX.checked_shr(128 - added).unwrap_or(0);
    let fits = number.to_u128().filter(|number| *number <= last);
    let index = fits.ok_or_else(|| {
        let problem = format!(
            "this is {number}; with {added} more bits in the prefix, subnets have the numbers 0 to {last}"
        );
        FunctionError::Argument(2, problem)
    })?;
    let offset = index.checked_shl(network.bits() - length).unwrap_or(0);
    let address = network.address | offset;
    Ok(Value::string(format!("{}/{length}", network.show(address))))
}

fn subnets(arguments: &Arguments) -> Result<Value, FunctionError> {
    let network = network(arguments)?;
    let last = network.address | network.hosts(network.length);
    // The first free address; `None` after the very last one.
    let mut free = Some(network.address);
    let mut subnets = Vec::new();
    for index in 1..arguments.len() {
        // Terraform limits the bits so that the arithmetic stays small.
        let length = subnet_length(arguments, network, index, 1, 32)?;
        let hosts = network.hosts(length);
        let start = free
            .and_then(|free| free.checked_add(hosts))
            .map(|end| end & network.mask(length))
            .filter(|start| *start <= last);
        let Some(start) = start else {
            let problem = format!("`{}` has no room left for this subnet", arguments.text(0));
            return Err(FunctionError::Argument(index, problem));
        };
        subnets.push(Value::string(format!("{}/{length}", network.show(start))));
        free = (start | hosts).checked_add(1);
    }
    Ok(Value::list(subnets))
}
