//! The keys of a set in Redis, and the errors about them.

use crate::error::{Report, SharedError};
use crate::reply::shortened;
use redis::{RedisError, RedisResult, Value};
use std::fmt;

/// The keys of a set, or of a generation of one.
#[derive(Clone, Debug)]
pub(super) struct RedisKeys {
    pub(super) name: String,
    prefix: String,
}

impl RedisKeys {
    /// The keys of the set of this name. In braces, the name is the hash tag of Redis Cluster, so
    /// all keys of a set are on one server.
    pub(super) fn of(name: &str) -> Result<Self, SharedError> {
        if name.is_empty() || name.contains(['{', '}']) {
            return Err(SharedError::other(format!(
                "the name {name:?} is empty or has a brace, which marks a hash tag in Redis Cluster"
            )));
        }
        let (name, prefix) = (name.to_owned(), format!("{{{name}}}"));
        Ok(Self { name, prefix })
    }

    /// The keys of one of the set's generations.
    pub(super) fn of_generation(&self, number: impl fmt::Display) -> Self {
        let (name, prefix) = (self.name.clone(), self.key(number));
        Self { name, prefix }
    }

    /// The key of a part of the set.
    pub(super) fn key(&self, role: impl fmt::Display) -> String {
        format!("{}:{role}", self.prefix)
    }

    /// The texts of a script's answer.
    pub(super) fn answer(&self, reply: RedisResult<Value>, script: &str) -> Result<Vec<Vec<u8>>, SharedError> {
        let unexpected =
            |reply: &Value| SharedError::other(format!("unexpected reply to {script}: {}", shortened(reply)));
        let reply = reply.map_err(|error| self.error(error))?;
        let Value::Array(texts) = reply else {
            return Err(unexpected(&reply));
        };
        let bytes = |text| match text {
            Value::BulkString(bytes) => Ok(bytes),
            other => Err(unexpected(&other)),
        };
        texts.into_iter().map(bytes).collect()
    }

    /// The error of a command about these keys.
    pub(super) fn error(&self, error: RedisError) -> SharedError {
        // (In a script, Redis 7 says so with the code ERR, and Valkey with none.)
        let texts = ["The user executing the script can't", "ACL failure in script"];
        let in_script = || texts.iter().any(|text| error.to_string().contains(text));
        if error.code() != Some("NOPERM") && !in_script() {
            return SharedError::redis(error);
        }
        let error = SharedError::redis(error);
        let text = format!(
            "{error}; the user needs @scripting, the commands of the scripts (@read, @write, TIME), and the keys ~{{{}}}:*",
            self.name
        );
        Report::other(text).because(error).into()
    }

    /// The error for a part that no node wrote.
    pub(super) fn foreign(&self, role: impl fmt::Display, what: &str) -> SharedError {
        let key = self.key(role);
        SharedError::other(format!("{key} was not written by a shared filter: {what}"))
    }
}
