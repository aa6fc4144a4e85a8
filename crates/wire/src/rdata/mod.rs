//! Record data: one table of types, and what follows from it.
//!
//! | file | what |
//! |---|---|
//! | `schema` | the table |
//! | `wire` | fields of wire data, its validity, the names in it |
//! | `parse` | text to wire, field by field |
//! | `print` | wire to text, field by field |
//! | other files | kinds of fields that need more than a few lines, both ways |

mod address;
mod binary;
pub mod bitmap;
pub mod error;
pub mod gateway;
pub mod loc;
pub mod number;
pub mod parse;
pub mod print;
pub mod schema;
pub mod string;
pub mod svcb;
pub mod wire;

pub use binary::base64_word;
pub use error::{Fault, RdataError, TextError};
pub use parse::{Scope, Token, Tokens, from_text, parse, parse_field, tokens};
pub use print::{FieldText, Presentation};
pub use schema::{Field, Kind, NameUse, Schema};
pub use wire::{EmbeddedName, Value, make_canonical, names, validate, values};
