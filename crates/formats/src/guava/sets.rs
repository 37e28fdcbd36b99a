//! Two filters of Guava's as sets of keys.

use super::GuavaBloom;
use lanebloom::IncompatibleError;
use lanebloom::internal::acquire;

crate::java::sets::sets!(GuavaBloom);
