//! Replies in errors. If a reply does not fit its command, the error quotes the reply's beginning
//! only, since a server may send anything, of any length.
//!
//! Replies are read as [`Value`]s: the conversions of the `redis` crate write all of a reply into
//! their error.
use redis::{ErrorKind, RedisError};
use std::fmt::{self, Write};

/// The most bytes of a reply that an error quotes.
const REPLY_TEXT: usize = 80;
/// The most bytes of a server's error, with its code, that an error quotes. (An error of Redis that
/// names a script and a line has 150.)
const ERROR_TEXT: usize = 400;

/// The beginning of a reply, as long as a message should have. Never formats the rest, which can be
/// long.
pub(super) fn shortened(reply: impl fmt::Debug) -> String {
    beginning(format_args!("{reply:?}"), REPLY_TEXT).0
}

/// The error, with its text cut to the length that a message should have.
pub(super) fn brief(error: RedisError) -> RedisError {
    let (text, true) = beginning(&error, ERROR_TEXT) else {
        return error;
    };
    let detail = error.detail().map(|detail| beginning(detail, ERROR_TEXT).0);
    match (error.kind(), error.code()) {
        (ErrorKind::Extension, Some(code)) => redis::make_extension_error(beginning(code, REPLY_TEXT).0, detail),
        (kind @ ErrorKind::Server(_), Some(code)) => (kind, "the server", detail.unwrap_or(code.to_string())).into(),
        (kind, _) => (kind, "the redis crate", text).into(),
    }
}

/// The first bytes of a text, and whether there are more.
fn beginning(text: impl fmt::Display, most: usize) -> (String, bool) {
    struct Beginning {
        text: String,
        most: usize,
    }

    impl Write for Beginning {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for character in text.chars() {
                if self.text.len() >= self.most {
                    return Err(fmt::Error);
                }
                self.text.push(character);
            }
            Ok(())
        }
    }

    let mut beginning = Beginning {
        text: String::new(),
        most,
    };
    // An error says that there is no more room.
    let cut = write!(beginning, "{text}").is_err();
    if cut {
        beginning.text.push_str("...");
    }
    (beginning.text, cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::{ServerErrorKind, Value, parse_redis_value};

    /// An error keeps its kind and code, which tell errors apart, and is short whatever it quotes.
    #[test]
    fn errors_are_short() {
        let long = "x".repeat(1 << 20);
        for (reply, kind, code) in [
            (
                format!("-ERR {long}\r\n"),
                ErrorKind::Server(ServerErrorKind::ResponseError),
                Some("ERR"),
            ),
            (
                format!("-READONLY {long}\r\n"),
                ErrorKind::Server(ServerErrorKind::ReadOnly),
                Some("READONLY"),
            ),
            (
                format!("-WRONGTYPE {long}\r\n"),
                ErrorKind::Extension,
                Some("WRONGTYPE"),
            ),
            (format!("-{long}\r\n"), ErrorKind::Extension, None),
            (format!(":{long}\r\n"), ErrorKind::Parse, None),
        ] {
            let error = match parse_redis_value(reply.as_bytes()) {
                Ok(Value::ServerError(error)) => error.into(),
                Ok(value) => panic!("{value:?}"),
                Err(error) => error,
            };
            let brief = brief(error);
            assert_eq!(brief.kind(), kind);
            assert!(code.is_none() || brief.code() == code, "{brief}");
            assert!(brief.to_string().len() < 600, "{brief}");
        }
        let error = || RedisError::from((ErrorKind::Client, "no", "short".into()));
        assert_eq!(brief(error()), error());
    }

    #[test]
    fn replies_of_another_kind_are_told_shortly() {
        let long = || Value::BulkString(vec![b'x'; 1 << 20]);
        assert!(shortened(long()).len() < 100);
        assert!(shortened(Value::Array(vec![long()])).len() < 100);
        // A character is not cut in two.
        assert_eq!(beginning("äää", 3), ("ää...".into(), true));
        assert_eq!(beginning("äää", 6), ("äää".into(), false));
    }
}
