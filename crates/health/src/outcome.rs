//! What a probe found, in words that an operator can act on.

use std::fmt;
use std::io;

/// What a probe found.
pub type Outcome = Result<Success, Fault>;

/// The target did what its check expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Success {
    /// The observation that the check asked for.
    pub proof: Proof,
    /// Days until the target's certificate ends; `None` without TLS.
    pub certificate_days: Option<i32>,
}

/// The observation that shows a target to be healthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The target accepted a connection.
    Connection,
    /// The TLS handshake was completed, with a trusted certificate if one is required.
    Handshake,
    /// The HTTP response had this status, which the check expects.
    Status(u16),
    /// The gRPC health service said that it serves.
    Serving,
    /// The ICMP echo request was answered.
    Echo,
    /// The DNS response was as expected; its code in words.
    Dns(Box<str>),
    /// The reply held the expected octets.
    Reply,
    /// The program ended with exit status 0; the first line of its output.
    Exit(Box<str>),
    /// The file said `up`.
    File,
    /// A program outside pushed `up`; the text it gave.
    Pushed(Box<str>),
}

/// The part of a probe that was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The connection was being made.
    Connect,
    /// The TLS handshake was under way.
    Handshake,
    /// The reply was awaited.
    Reply,
}

/// Why a probe failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The target refused: no process listens there.
    Refused,
    /// The system or the network cannot reach the target.
    Unreachable(io::ErrorKind),
    /// The timeout passed during this step.
    Timeout(Step),
    /// The target closed the connection during this step.
    Closed(Step),
    /// The target's certificate is not trusted.
    Certificate(Distrust),
    /// The certificate ends in this many days, fewer than the check requires.
    CertificateEnds(i32),
    /// The TLS handshake failed; the reason in words.
    Handshake(Box<str>),
    /// The reply broke the rules of this protocol.
    Protocol(&'static str),
    /// The HTTP response had this status, which the check does not expect.
    Status(u16),
    /// The expected text was not in the first octets of the reply.
    Text,
    /// The gRPC call ended with this status code.
    Grpc(u16),
    /// The gRPC health service gave this serving status, which is not SERVING.
    NotServing(u8),
    /// The DNS response had another code; its name.
    Rcode(Box<str>),
    /// The DNS response lacked the expected address.
    NoAddress,
    /// The program ended otherwise than with exit status 0; how, and the first line of its output.
    Exit(Box<str>),
    /// The file said `down`.
    File,
    /// The file said neither `up` nor `down`.
    FileContent,
    /// The file cannot be read.
    NoFile(io::ErrorKind),
    /// A program outside pushed `down`; the text it gave.
    Pushed(Box<str>),
    /// The pushed value has expired: the program that pushes is silent.
    Expired,
    /// The value has never been pushed.
    NeverPushed,
    /// This machine cannot make the probe; what is wrong and what to do.
    Local(Box<str>),
}

/// Why a certificate is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate is for another name or address.
    OtherName,
    /// The certificate leads to no trusted authority.
    UnknownIssuer,
    /// Something else is wrong, in the words of the TLS library.
    Other(Box<str>),
}

impl From<Proof> for Success {
    fn from(proof: Proof) -> Self {
        Self { proof, certificate_days: None }
    }
}

impl fmt::Display for Success {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.proof {
            Proof::Connection => f.write_str("connected")?,
            Proof::Handshake => f.write_str("TLS handshake completed")?,
            Proof::Status(status) => write!(f, "HTTP status {status}")?,
            Proof::Serving => f.write_str("gRPC health: serving")?,
            Proof::Echo => f.write_str("echo reply")?,
            Proof::Dns(rcode) => write!(f, "DNS response {rcode}")?,
            Proof::Reply => f.write_str("expected reply")?,
            Proof::Exit(line) => write!(f, "exit status 0{}", Behind(line))?,
            Proof::File => f.write_str("the file says up")?,
            Proof::Pushed(text) => write!(f, "pushed up{}", Behind(text))?,
        }
        match self.certificate_days {
            Some(days) => write!(f, ", certificate {}", End(days)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("the connection was refused"),
            Self::Unreachable(kind) => write!(f, "it cannot be reached: {kind}"),
            Self::Timeout(Step::Connect) => f.write_str("no connection within the timeout"),
            Self::Timeout(Step::Handshake) => f.write_str("no TLS handshake within the timeout"),
            Self::Timeout(Step::Reply) => f.write_str("no complete reply within the timeout"),
            Self::Closed(Step::Connect) => f.write_str("the connection was closed"),
            Self::Closed(Step::Handshake) => {
                f.write_str("the connection was closed during the TLS handshake")
            }
            Self::Closed(Step::Reply) => f.write_str("the connection was closed before the reply"),
            Self::Certificate(distrust) => write!(f, "its certificate {distrust}"),
            Self::CertificateEnds(days) => write!(f, "its certificate {}", End(*days)),
            Self::Handshake(error) => write!(f, "the TLS handshake failed: {error}"),
            Self::Protocol(protocol) => write!(f, "the reply breaks the rules of {protocol}"),
            Self::Status(status) => write!(f, "HTTP status {status}"),
            Self::Text => f.write_str("the expected text is not in the reply"),
            Self::Grpc(code) => write!(f, "gRPC status {code}{}", Behind(grpc_code(*code))),
            Self::NotServing(status) => {
                write!(f, "gRPC health: {}", serving_status(*status))
            }
            Self::Rcode(rcode) => write!(f, "DNS response {rcode}"),
            Self::NoAddress => f.write_str("the expected address is not in the DNS response"),
            Self::Exit(how) => f.write_str(how),
            Self::File => f.write_str("the file says down"),
            Self::FileContent => f.write_str("the file says neither up nor down"),
            Self::NoFile(kind) => write!(f, "the file cannot be read: {kind}"),
            Self::Pushed(text) => write!(f, "pushed down{}", Behind(text)),
            Self::Expired => f.write_str("the pushed value has expired"),
            Self::NeverPushed => f.write_str("no value has been pushed yet"),
            Self::Local(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("has expired"),
            Self::NotYetValid => f.write_str("is not valid yet"),
            Self::OtherName => f.write_str("is for another name"),
            Self::UnknownIssuer => f.write_str("is signed by no trusted authority"),
            Self::Other(error) => write!(f, "is wrong: {error}"),
        }
    }
}

/// The days until a certificate ends, or since it has ended.
struct End(i32);

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            days @ ..0 => write!(f, "ended {} days ago", days.unsigned_abs()),
            days => write!(f, "ends in {days} days"),
        }
    }
}

/// Text that follows a colon, if there is any.
struct Behind<'t>(&'t str);

impl fmt::Display for Behind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// Returns the name of a gRPC status that servers of the health service send.
fn grpc_code(code: u16) -> &'static str {
    match code {
        5 => "the service is not known",
        7 => "permission denied",
        12 => "the server has no health service",
        14 => "unavailable",
        16 => "not authenticated",
        _ => "",
    }
}

/// Returns the name of a serving status of the gRPC health service.
fn serving_status(status: u8) -> &'static str {
    match status {
        0 => "unknown",
        2 => "not serving",
        3 => "the service is not known",
        _ => "a status that is not known",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_in_words() {
        for (fault, words) in [
            (Fault::Timeout(Step::Connect), "no connection within the timeout"),
            (Fault::Certificate(Distrust::Expired), "its certificate has expired"),
            (Fault::Grpc(12), "gRPC status 12: the server has no health service"),
            (Fault::Grpc(99), "gRPC status 99"),
            (Fault::NotServing(2), "gRPC health: not serving"),
            (Fault::Pushed("deploy".into()), "pushed down: deploy"),
            (Fault::Pushed("".into()), "pushed down"),
        ] {
            assert_eq!(fault.to_string(), words);
        }
    }

    #[test]
    fn a_success_tells_when_the_certificate_ends() {
        let success = Success { proof: Proof::Status(200), certificate_days: Some(30) };
        assert_eq!(success.to_string(), "HTTP status 200, certificate ends in 30 days");
        let success = Success { certificate_days: Some(-3), ..success };
        assert_eq!(success.to_string(), "HTTP status 200, certificate ended 3 days ago");
        assert_eq!(Success::from(Proof::Exit("".into())).to_string(), "exit status 0");
    }

    #[test]
    fn a_fault_takes_little_memory_so_that_a_hundred_can_be_stored() {
        assert!(size_of::<Outcome>() <= 32, "{}", size_of::<Outcome>());
    }
}
