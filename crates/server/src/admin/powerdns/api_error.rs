//! Why a request was not carried out, as clients of PowerDNS read it: `{"error": "…"}`.

use crate::admin::problem::Problem;
use crate::admin::reply::{Reply, json_reply};
use crate::edit::EditError;
use crate::edit::zones::ZoneError;
use crate::zone_commands::CommandError;
use hyper::StatusCode;
use serde_json::json;
use zonda_zone::ChangeError;

/// Why a request was not carried out.
#[derive(Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The status of the reply.
    pub status: StatusCode,
    /// Text that says what is wrong, and what to do where that is not plain.
    pub text: String,
}

impl ApiError {
    /// A request that makes sense, but cannot be carried out (422).
    pub fn refused(text: impl Into<String>) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, text: text.into() }
    }

    /// Something that is not there.
    pub fn not_found(text: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, text: text.into() }
    }
}

/// The reply that was found, or that to an error.
pub fn reply_of(answer: impl FnOnce() -> Result<Reply, ApiError>) -> Reply {
    answer().unwrap_or_else(|ApiError { status, text }| {
        let mut reply = json_reply(&json!({ "error": text }));
        *reply.status_mut() = status;
        reply
    })
}

/// The reply to a request whose body cannot be read.
pub fn problem(found: &Problem) -> Reply {
    reply_of(|| Err(ApiError { status: found.status, text: found.detail.clone() }))
}

impl From<ChangeError> for ApiError {
    fn from(ChangeError { owner, rtype, rule }: ChangeError) -> Self {
        Self::refused(format!("RRset {owner} IN {rtype}: {rule}"))
    }
}

impl From<EditError> for ApiError {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Refused(refused) => refused.into(),
            error => {
                let Problem { status, detail, .. } = error.into();
                Self { status: as_powerdns(status), text: detail }
            }
        }
    }
}

impl From<ZoneError> for ApiError {
    fn from(error: ZoneError) -> Self {
        let is_there = matches!(error, ZoneError::Exists(_));
        match error {
            ZoneError::Refused(refused) => refused.into(),
            error => {
                let Problem { status, detail, .. } = error.into();
                let status = if is_there { StatusCode::CONFLICT } else { as_powerdns(status) };
                Self { status, text: detail }
            }
        }
    }
}

impl From<CommandError> for ApiError {
    fn from(error: CommandError) -> Self {
        let Problem { status, detail, .. } = error.into();
        Self { status: as_powerdns(status), text: detail }
    }
}

/// The status that PowerDNS has for something: 409 is kept for a zone that is there already, and a
/// zone that cannot be changed is 422.
fn as_powerdns(status: StatusCode) -> StatusCode {
    match status {
        StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => StatusCode::UNPROCESSABLE_ENTITY,
        status => status,
    }
}
