use hickory_server::Server;
use hickory_server::net::runtime::Time;
use hickory_server::proto::op::{Header, HeaderCounts, Metadata, ResponseCode};
use hickory_server::proto::rr::rdata::TXT;
use hickory_server::proto::rr::{Name, RData, Record, RecordType};
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponseBuilder;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, UdpSocket};

type Tokens = Arc<Mutex<BTreeSet<(String, String)>>>;

struct Challenges(Tokens);

#[async_trait::async_trait]
impl RequestHandler for Challenges {
    async fn handle_request<R: ResponseHandler, T: Time>(
        &self,
        request: &Request,
        mut handle: R,
    ) -> ResponseInfo {
        let mut metadata = Metadata::response_from_request(&request.metadata);
        metadata.authoritative = true;
        let zone = Name::from_ascii("auth.example.").expect("a name");
        let mut answers = Vec::new();
        match request.request_info() {
            Ok(info) if Name::from(info.query.name().clone()).base_name() == zone => {
                let name = info.query.name().to_string();
                let account = name.split('.').next().unwrap_or_default();
                let tokens = self.0.lock().expect("no panic");
                let own = tokens.iter().filter(|(of, _)| of == account);
                if info.query.query_type() == RecordType::TXT {
                    answers.extend(own.map(|(_, token)| {
                        let owner = info.query.original().name().clone();
                        Record::from_rdata(owner, 0, RData::TXT(TXT::new(vec![token.clone()])))
                    }));
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

fn follow(tokens: &Tokens) {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let mut tokens = tokens.lock().expect("no panic");
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["set", account, token] => _ = tokens.insert((account.into(), token.into())),
            ["clear", account, token] => _ = tokens.remove(&(account.into(), token.into())),
            _ => {}
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("an address")?;
    let tokens = Tokens::default();
    let followed = Arc::clone(&tokens);
    std::thread::spawn(move || follow(&followed));
    let mut server = Server::new(Challenges(tokens));
    server.register_socket(UdpSocket::bind(&address).await?);
    server.register_listener(TcpListener::bind(&address).await?, Duration::from_secs(10), 64);
    Ok(server.block_until_done().await?)
}
