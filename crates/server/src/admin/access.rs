//! Which client is answered which requests.
//!
//! | over | with | answered requests |
//! |---|---|---|
//! | the Unix socket | | all: only its owner and root can open it |
//! | TCP, a token is configured | the token | all |
//! | | the read token | [`Scope::Open`], [`Scope::Read`] |
//! | | no token | none |
//! | TCP, no token is configured | a host that no web page has | [`Scope::Open`] |
//!
//! Requests of PowerDNS's HTTP API, below `/api`, need that API's key over TCP instead, whatever
//! else is configured: its clients know no other way.
//!
//! A web page cannot know a token. Where none is asked for, a page of `evil.example` could have its
//! name lead to this machine and read what it finds there, so the request must name the host by an
//! address or as `localhost`.

use super::call::Scope;
use super::reply::{Reply, text};
use hyper::header::{AUTHORIZATION, CONNECTION, HOST, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use hyper::http::uri::Authority;
use hyper::{Method, Request, StatusCode};
use std::net::IpAddr;
use std::sync::Arc;

/// The header field with the key of PowerDNS's API.
const POWERDNS_KEY: &str = "x-api-key";

/// The requests that the clients of a socket may send.
#[derive(Clone)]
pub enum Rights {
    /// Every request, without a token.
    All {
        /// Whether PowerDNS's API is answered.
        has_powerdns: bool,
    },
    /// What lies behind a TCP address.
    Tcp {
        /// The tokens that open it; none is configured where both are absent.
        tokens: Tokens,
        /// The key that opens PowerDNS's API, which is not answered without one.
        powerdns_key: Option<Arc<str>>,
        /// Whether even a token opens no more than [`Scope::Open`].
        is_metrics_only: bool,
    },
}

/// The tokens of the configuration.
#[derive(Clone, Default)]
pub struct Tokens {
    /// The token that opens everything.
    pub write: Option<Arc<str>>,
    /// The token that opens what changes nothing.
    pub read: Option<Arc<str>>,
}

impl Tokens {
    /// Whether no token is configured.
    fn are_absent(&self) -> bool {
        self.write.is_none() && self.read.is_none()
    }

    /// The widest scope that the token of a request opens; none if it carries none of them.
    fn scope<B>(&self, request: &Request<B>) -> Option<Scope> {
        let carries = |token: &Option<Arc<str>>| {
            token.as_ref().is_some_and(|token| is_authorised(request, token))
        };
        match (carries(&self.write), carries(&self.read)) {
            (true, _) => Some(Scope::Write),
            (false, true) => Some(Scope::Read),
            (false, false) => None,
        }
    }
}

impl Rights {
    /// The reply to a request that this client may not make, if it may not; `scope` is what the
    /// request needs.
    pub fn refusal<B>(&self, request: &Request<B>, scope: Scope) -> Option<Reply> {
        let Self::Tcp { tokens, is_metrics_only, .. } = self else { return None };
        let opened = match tokens.are_absent() {
            true => Scope::Open,
            false => match tokens.scope(request) {
                Some(opened) => opened,
                None => return Some(unauthorised("a bearer token is needed: admin.token\n")),
            },
        };
        if tokens.are_absent() && !is_host_own(request) {
            return Some(misdirected());
        }
        if *is_metrics_only && scope > Scope::Open {
            let why = "only /metrics, /health, /ready and /v1/version are answered here\n";
            return Some(refuse(StatusCode::NOT_FOUND, why));
        }
        if scope > opened {
            return Some(match opened {
                Scope::Open => unauthorised(
                    "without a token, only GET /metrics, /health, /ready and /v1/version are \
                     answered over TCP: set admin.token-file, or use admin.socket, as `zonda` \
                     does\n",
                ),
                _ => refuse(
                    StatusCode::FORBIDDEN,
                    "the read token changes nothing: use admin.token, or admin.socket\n",
                ),
            });
        }
        refusal_of_page(request)
    }

    /// Whether PowerDNS's API is answered.
    pub fn have_powerdns(&self) -> bool {
        match self {
            Self::All { has_powerdns } => *has_powerdns,
            Self::Tcp { powerdns_key, is_metrics_only, .. } => {
                powerdns_key.is_some() && !is_metrics_only
            }
        }
    }

    /// The reply to a request of PowerDNS's API that this client may not make, if it may not.
    pub fn refusal_of_powerdns<B>(&self, request: &Request<B>) -> Option<Reply> {
        let Self::Tcp { powerdns_key, .. } = self else { return None };
        let given = request.headers().get(POWERDNS_KEY).map_or(&[][..], HeaderValue::as_bytes);
        if !powerdns_key.as_ref().is_some_and(|key| is_same(given, key.as_bytes())) {
            let why = "X-API-Key needs the key of admin.powerdns-api-key\n";
            let mut reply = refuse(StatusCode::UNAUTHORIZED, why);
            let scheme = HeaderValue::from_static("X-API-Key realm=\"zonda\"");
            reply.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            return Some(reply);
        }
        refusal_of_page(request)
    }

    /// Whether a client that was not refused has shown that it may know everything.
    pub fn tells_all(&self) -> bool {
        !matches!(self, Self::Tcp { tokens, .. } if tokens.are_absent())
    }
}

/// The reply to a request that a web page sends to change something, if it is one.
fn refusal_of_page<B>(request: &Request<B>) -> Option<Reply> {
    // Only a web page sends this header: one that some user of this machine looks at.
    let is_of_page = request.method() != Method::GET && request.headers().contains_key(ORIGIN);
    is_of_page.then(|| refuse(StatusCode::FORBIDDEN, "web pages cannot change anything here\n"))
}

/// Whether a request carries the token.
fn is_authorised<B>(request: &Request<B>, token: &str) -> bool {
    const SCHEME: &[u8] = b"bearer ";
    let given = request.headers().get(AUTHORIZATION).map_or(&[][..], |value| value.as_bytes());
    let given = match given.split_at_checked(SCHEME.len()) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(SCHEME) => token, // rfc9110#11.1
        _ => &[],
    };
    is_same(given, token.as_bytes())
}

/// Whether octets are those of a secret; takes the same time wherever wrong ones differ.
fn is_same(given: &[u8], secret: &[u8]) -> bool {
    let differing = given.iter().zip(secret).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == secret.len() && differing == 0
}

/// Whether a request names its host, if it does, by an address or as `localhost`: every browser
/// sends the name of the page's host.
pub fn is_host_own<B>(request: &Request<B>) -> bool {
    let target = request.uri().authority().map(Authority::as_str);
    let hosts = request.headers().get_all(HOST).iter().map(|host| host.to_str().unwrap_or("?"));
    target.into_iter().chain(hosts).all(|host| {
        host.parse().is_ok_and(|authority: Authority| {
            let name = authority.host();
            let literal = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
            let is_address = literal.unwrap_or(name).parse::<IpAddr>().is_ok();
            is_address || name.eq_ignore_ascii_case("localhost")
        })
    })
}

/// The reply to a request that names another host (rfc9110#15.5.20).
pub fn misdirected() -> Reply {
    let why = "this server is asked by its address or as localhost: no other Host is answered\n";
    refuse(StatusCode::MISDIRECTED_REQUEST, why)
}

/// A reply that asks for a token (rfc9110#11.6.1).
fn unauthorised(why: &'static str) -> Reply {
    let mut reply = refuse(StatusCode::UNAUTHORIZED, why);
    reply.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    reply
}

/// A reply that ends its connection: a client that may ask for nothing holds no place.
fn refuse(status: StatusCode, why: &'static str) -> Reply {
    let mut reply = text(status, why.to_owned());
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}
