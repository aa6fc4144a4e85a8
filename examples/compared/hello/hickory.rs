use hickory_server::Server;
use hickory_server::net::runtime::Time;
use hickory_server::proto::op::{Header, HeaderCounts, Metadata, ResponseCode};
use hickory_server::proto::rr::rdata::TXT;
use hickory_server::proto::rr::{RData, Record, RecordType};
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponseBuilder;
use std::time::Duration;
use tokio::net::{TcpListener, UdpSocket};

struct Hello;

#[async_trait::async_trait]
impl RequestHandler for Hello {
    async fn handle_request<R: ResponseHandler, T: Time>(
        &self,
        request: &Request,
        mut handle: R,
    ) -> ResponseInfo {
        let mut metadata = Metadata::response_from_request(&request.metadata);
        metadata.authoritative = true;
        let mut answers = Vec::new();
        match request.request_info() {
            Ok(info) if info.query.name().to_string() == "hello.example." => {
                if info.query.query_type() == RecordType::TXT {
                    let text = RData::TXT(TXT::new(vec!["Hello, world!".to_owned()]));
                    answers.push(Record::from_rdata(
                        info.query.original().name().clone(),
                        60,
                        text,
                    ));
                }
            }
            _ => metadata.response_code = ResponseCode::Refused,
        }
        let builder = MessageResponseBuilder::from_message_request(request);
        let response = builder.build(metadata, &answers, [], [], []);
        handle.send_response(response).await.unwrap_or_else(|_| failure(metadata))
    }
}

/// What is logged of a reply that cannot be sent.
fn failure(mut metadata: Metadata) -> ResponseInfo {
    metadata.response_code = ResponseCode::ServFail;
    Header { metadata, counts: HeaderCounts::default() }.into()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("an address")?;
    let mut server = Server::new(Hello);
    server.register_socket(UdpSocket::bind(&address).await?);
    server.register_listener(TcpListener::bind(&address).await?, Duration::from_secs(10), 64);
    Ok(server.block_until_done().await?)
}
