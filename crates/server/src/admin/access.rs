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

/// The requests that the clients of a socket may send.
#[derive(Clone)]
pub enum Rights {
    /// Every request, without a token.
    All,
    /// What lies behind a TCP address.
    Tcp {
        /// The tokens that open it; none is configured where both are absent.
        tokens: Tokens,
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
        let Self::Tcp { tokens, is_metrics_only } = self else { return None };
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
        // Only a web page sends this header: one that some user of this machine looks at.
        if request.method() != Method::GET && request.headers().contains_key(ORIGIN) {
            return Some(refuse(StatusCode::FORBIDDEN, "web pages cannot change anything here\n"));
        }
        None
    }

    /// Whether a client that was not refused has shown that it may know everything.
    pub fn tells_all(&self) -> bool {
        !matches!(self, Self::Tcp { tokens, .. } if tokens.are_absent())
    }
}

/// Whether a request carries the token; takes the same time wherever a wrong one differs.
fn is_authorised<B>(request: &Request<B>, token: &str) -> bool {
    const SCHEME: &[u8] = b"bearer ";
    let given = request.headers().get(AUTHORIZATION).map_or(&[][..], |value| value.as_bytes());
    let given = match given.split_at_checked(SCHEME.len()) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(SCHEME) => token, // rfc9110#11.1
        _ => &[],
    };
    let differing = given.iter().zip(token.as_bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && differing == 0
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
