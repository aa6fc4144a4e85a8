//! Pages at addresses of their own, for probes and scrapers that have no token.

use super::page_sockets::Pages;
use super::reply::{Reply, text};
use super::{access, api};
use crate::control::Control;
use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, StatusCode};
use std::sync::Arc;

/// Answers a request to an address that has these pages.
pub async fn answer(pages: Pages, request: Request<Incoming>, control: Arc<Control>) -> Reply {
    // On this machine, a page of the web might ask by the name of its own host.
    if pages.is_loopback && !access::is_host_own(&request) {
        return access::misdirected();
    }
    let path = request.uri().path();
    let is_page = match path {
        "/health" => pages.health,
        "/ready" => pages.ready,
        "/metrics" => pages.metrics,
        _ => false,
    };
    if !is_page {
        return text(StatusCode::NOT_FOUND, "no such page at this address\n".into());
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, "GET is answered\n".into());
        reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return reply;
    }
    match path {
        "/health" => text(StatusCode::OK, "OK".into()),
        path => {
            let is_metrics = path == "/metrics";
            let page = move || match is_metrics {
                true => api::metrics_page(&control),
                false => api::ready(&control, false, "OK"), // the word of CoreDNS
            };
            // A million zones take a while.
            tokio::task::spawn_blocking(page).await.unwrap_or_else(|_| {
                text(StatusCode::INTERNAL_SERVER_ERROR, "the page failed; see the log\n".into())
            })
        }
    }
}
