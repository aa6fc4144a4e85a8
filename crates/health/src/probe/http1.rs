//! Requests by HTTP/1.1, with a connection for each.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::connect;
use crate::check::{HttpCheck, Target};
use crate::decode::HttpResponse;
use crate::outcome::{Fault, Step};

/// Octets that are read at a time.
const PART_BYTES: usize = 1024;

/// Sends the request of a check and judges the response; returns its status.
///
/// # Errors
/// Why the target is not healthy.
pub async fn ask(
    check: &HttpCheck,
    target: &Target,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
) -> Result<u16, Fault> {
    let failed = |error| connect::fault(&error, Step::Reply);
    stream.write_all(&check.http1_request(target.socket_address())).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    let mut response = HttpResponse::new(check);
    let mut part = [0; PART_BYTES];
    loop {
        match stream.read(&mut part).await.map_err(failed)? {
            0 => return response.end(),
            len => {
                if let Some(result) = response.read(&part[..len]) {
                    return result;
                }
            }
        }
    }
}
