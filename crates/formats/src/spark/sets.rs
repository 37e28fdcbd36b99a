//! Two filters of Spark's as sets of keys.

use super::SparkBloom;
use lanebloom::IncompatibleError;
use lanebloom::internal::acquire;

crate::java::sets::sets!(SparkBloom);
