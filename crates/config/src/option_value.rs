//! EDNS options of queries to upstreams.

use crate::value::{Value, from_hex};

/// An EDNS option of queries to upstreams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamOption {
    /// The option's code.
    pub code: u16,
    /// Data of the option.
    pub data: OptionData,
    /// Whether the option is in queries for clients alone whose query has one of this code.
    pub is_conditional: bool,
}

/// The data of an EDNS option of queries to upstreams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionData {
    /// At most 64 octets.
    Octets(Vec<u8>),
    /// The name asked for.
    Name,
    /// The type asked for.
    Type,
    /// The client's address.
    ClientAddress,
    /// The client's port.
    ClientPort,
    /// The transport of the client's query.
    Transport,
    /// The address of the listener.
    ServerAddress,
    /// The port of the listener.
    ServerPort,
    /// The client's network: the lengths of the prefix for IPv4, at most 32, and IPv6, at most 128.
    ClientSubnet(u8, u8),
}

impl OptionData {
    /// Returns the data that a text, without its braces, stands for.
    fn of_variable(text: &str) -> Option<Self> {
        let subnet = |lengths: &str| {
            let (of_v4, of_v6) = lengths.split_once(' ')?;
            let (of_v4, of_v6) = (of_v4.parse().ok()?, of_v6.parse().ok()?);
            (of_v4 <= 32 && of_v6 <= 128).then_some(Self::ClientSubnet(of_v4, of_v6))
        };
        Some(match text {
            "name" => Self::Name,
            "type" => Self::Type,
            "client-address" => Self::ClientAddress,
            "client-port" => Self::ClientPort,
            "transport" => Self::Transport,
            "server-address" => Self::ServerAddress,
            "server-port" => Self::ServerPort,
            _ => return subnet(text.strip_prefix("client-subnet ")?),
        })
    }
}

impl Value for UpstreamOption {
    fn form() -> String {
        "the code of an EDNS option that the server has no use of its own for, and at most 64 \
         octets as \"0x\" and hexadecimal digits, such as \"65518 0x61626364\", or {name}, {type}, \
         {client-address}, {client-port}, {transport}, {server-address} or {server-port}; \
         \"8 {client-subnet 24 56}\"; perhaps \" if-present\" behind it"
            .into()
    }

    fn from_text(text: &str) -> Option<Self> {
        use zonda_wire::query::option;
        const OWN: [u16; 5] =
            [0, option::CLIENT_SUBNET, option::COOKIE, option::KEEPALIVE, option::PADDING];
        let (text, is_conditional) = match text.strip_suffix(" if-present") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let (code, data) = text.split_once(' ').unwrap_or((text, "0x"));
        let (code, data) = (code.parse().ok()?, data.trim());
        let variable = data.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let data = match variable {
            Some(variable) => OptionData::of_variable(variable)?,
            None => OptionData::Octets(from_hex(data.strip_prefix("0x")?)?),
        };
        let is_well_placed = match &data {
            OptionData::ClientSubnet(..) => code == option::CLIENT_SUBNET,
            OptionData::Octets(octets) => octets.len() <= 64 && !OWN.contains(&code),
            _ => !OWN.contains(&code),
        };
        is_well_placed.then_some(Self { code, data, is_conditional })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_option_is_a_code_and_data_that_the_server_does_not_send_itself() {
        let option = |text| UpstreamOption::from_text(text).map(|it| (it.code, it.data));
        let octets = |octets: &[u8]| OptionData::Octets(octets.to_vec());
        assert_eq!(option("65518 0x61626364"), Some((65518, octets(b"abcd"))));
        assert_eq!(option("3"), Some((3, octets(b""))));
        assert_eq!(option("65518 {client-address}"), Some((65518, OptionData::ClientAddress)));
        let subnet = Some((8, OptionData::ClientSubnet(24, 56)));
        assert_eq!(option("8 {client-subnet 24 56}"), subnet);
        let replaced = UpstreamOption::from_text("65518 {type} if-present").unwrap();
        assert!(replaced.is_conditional && replaced.data == OptionData::Type);
        let long = format!("9 0x{}", "00".repeat(65));
        for wrong in [
            "",
            "0",
            "10 0x00",
            "8 0x0001",
            "12",
            "65518 abcd",
            "65518 0xa",
            "x",
            &long,
            "65518 {client-subnet 24 56}",
            "8 {client-address}",
            "8 {client-subnet 33 56}",
            "8 {client-subnet 24 129}",
            "8 {client-subnet 24}",
            "65518 {client}",
            "65518 {type",
            "if-present",
        ] {
            assert_eq!(option(wrong), None, "{wrong}");
        }
    }
}
