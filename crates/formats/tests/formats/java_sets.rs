//! Filters of Guava and Spark as sets of keys.

use lanebloom_formats::{GuavaBloom, SparkBloom};

macro_rules! sets {
    ($module:ident, $filter:ident) => {
        mod $module {
            use super::*;

            fn filter(keys: std::ops::Range<i32>) -> $filter {
                let filter = $filter::with_capacity(20_000, 0.01).unwrap();
                filter.insert_all(keys);
                filter
            }

            #[test]
            fn estimates_are_those_of_the_made_sets() {
                let (a, b) = (filter(0..12_000), filter(8000..20_000));
                let union = a.clone();
                union.union_from(&b).unwrap();
                assert_eq!(a.estimated_union_len(&b), Ok(union.estimated_len()));
                let both = a.estimated_len() + b.estimated_len() - union.estimated_len();
                assert_eq!(a.estimated_intersection_len(&b), Ok(both));
                assert!(both.abs_diff(4000) < 300, "{both}");
                // Never below 0.
                let few = filter(0..1);
                assert!(few.estimated_intersection_len(&filter(1..20_000)).unwrap() <= 1);
            }

            #[test]
            fn a_subset_lacks_no_bit() {
                let all = filter(0..3000);
                assert_eq!(filter(0..0).is_subset(&all), Ok(true));
                assert_eq!(all.is_subset(&all.clone()), Ok(true));
                for key in 0..5000 {
                    let one = filter(key..key + 1);
                    assert_eq!(one.is_subset(&all), Ok(all.contains(&key)), "{key}");
                }
            }

            #[test]
            fn an_intersection_has_the_bits_of_both() {
                let (a, b) = (filter(0..12_000), filter(8000..20_000));
                let mut both = a.clone();
                assert_eq!(both.intersection_from(&b), Ok(true));
                assert!((8000..12_000).all(|key: i32| both.contains(&key)));
                let gone = (0..8000).filter(|key: &i32| !both.contains(key)).count();
                assert!(gone > 7000, "{gone}");
                assert_eq!((both.is_subset(&a), both.is_subset(&b)), (Ok(true), Ok(true)));
                // The bits that two filters of different keys share by chance.
                let words = |filter: &$filter| filter.fill_ratio();
                assert!(words(&both) < words(&a));
                assert_eq!(both.intersection_from(&b), Ok(false));
            }

            #[test]
            fn other_layouts_are_refused() {
                let mut a = filter(0..10);
                let b = $filter::with_capacity(30_000, 0.01).unwrap();
                let error = a.is_subset(&b).unwrap_err().to_string();
                assert!(error.starts_with("the other filter's layout differs"), "{error}");
                assert!(a.estimated_union_len(&b).is_err());
                assert!(a.estimated_intersection_len(&b).is_err());
                assert!(a.intersection_from(&b).is_err());
                assert!((0..10).all(|key: i32| a.contains(&key)));
            }
        }
    };
}
sets!(guava, GuavaBloom);
sets!(spark, SparkBloom);
