//! Files of Parquet, written and read by parquet-rs.

use super::model::Model;
use super::*;
use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, LargeStringArray, RecordBatch, StringArray, StringViewArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use std::sync::Arc;

/// A table of ids, texts and lists.
fn table(texts: &[Option<String>], kind: usize) -> RecordBatch {
    let ids = Int64Array::from_iter_values(0..texts.len() as i64);
    let column: ArrayRef = match kind {
        0 => Arc::new(StringArray::from_iter(texts)),
        1 => Arc::new(LargeStringArray::from_iter(texts)),
        _ => Arc::new(StringViewArray::from_iter(texts)),
    };
    let mut lists = ListBuilder::new(Int64Builder::new());
    for at in 0..texts.len() {
        lists.append_option((at % 5 > 0).then(|| (0..at as i64 % 3).map(Some)));
    }
    let lists: ArrayRef = Arc::new(lists.finish());
    let names = ["id", "text", "list"];
    RecordBatch::try_from_iter_with_nullable(
        names
            .into_iter()
            .zip([Arc::new(ids) as _, column, lists])
            .map(|(name, column)| (name, column, name != "id")),
    )
    .unwrap()
}

fn write(shell: &Shell, name: &str, batch: &RecordBatch) {
    let mut bytes = Vec::new();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(100))
        .set_compression(Compression::SNAPPY)
        .set_column_compression(ColumnPath::from("text"), Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![KeyValue::new("who".to_owned(), "me".to_owned())]))
        .build();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    shell.write(name, bytes);
}

/// All rows, after checks of what stays as it was written.
fn read(shell: &Shell, name: &str) -> RecordBatch {
    let file = fs::File::open(shell.path(name)).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let metadata = builder.metadata();
    let notes = metadata.file_metadata().key_value_metadata().unwrap();
    assert_eq!(
        notes
            .iter()
            .filter(|note| note.key == "who" && note.value.as_deref() == Some("me"))
            .count(),
        1
    );
    for group in metadata.row_groups() {
        assert!(group.num_rows() <= 100);
        let codecs = Vec::from_iter(group.columns().iter().map(|column| column.compression()));
        assert_eq!(
            codecs,
            [
                Compression::SNAPPY,
                Compression::ZSTD(ZstdLevel::default()),
                Compression::SNAPPY
            ]
        );
    }
    let schema = builder.schema().clone();
    let batches = Vec::from_iter(builder.build().unwrap().map(Result::unwrap));
    let column = |at: usize| {
        let columns = Vec::from_iter(batches.iter().map(|batch| batch.column(at).as_ref()));
        match columns[..] {
            [] => arrow_array::new_empty_array(schema.field(at).data_type()),
            _ => arrow_select::concat::concat(&columns).unwrap(),
        }
    };
    RecordBatch::try_new(schema.clone(), (0..3).map(column).collect()).unwrap()
}

fn texts_of(batch: &RecordBatch) -> Vec<Option<String>> {
    let column = batch.column(1);
    let owned = |text: Option<&str>| text.map(str::to_owned);
    match column.as_string_opt::<i32>() {
        Some(column) => column.iter().map(owned).collect(),
        None => match column.as_string_opt::<i64>() {
            Some(column) => column.iter().map(owned).collect(),
            None => column.as_string_view().iter().map(owned).collect(),
        },
    }
}

/// Texts that are too long for one batch of rows, some of them null.
fn long_texts(seed: u64) -> Vec<Option<String>> {
    let mut random = Random(seed);
    let texts = random.texts(600);
    let long = texts.into_iter().enumerate().map(|(at, text)| match at % 7 {
        0 => None,
        1 => Some(format!("{text}\n{at} {}", "-".repeat(20_000))),
        _ => Some(text),
    });
    long.collect()
}

/// Texts lose what was seen, documents go, and all else stays: the order, the other columns, the
/// schema, the compression.
#[test]
fn a_table_is_deduplicated_as_lines_are() {
    for kind in 0..3 {
        let shell = Shell::new();
        let all = [long_texts(1), long_texts(2)];
        let mut model = Model::new(Some("\n"));
        let mut expected = Vec::new();
        for (texts, name) in all.iter().zip(["in/a.parquet", "in/x/b.parquet"]) {
            let before = table(texts, kind);
            write(&shell, name, &before);
            let mut ids = Vec::new();
            let mut left = Vec::new();
            for (id, text) in texts.iter().enumerate() {
                match text.as_ref().map(|text| model.pass(text).0) {
                    None => left.push(None),
                    Some(None) => continue,
                    Some(text) => left.push(text),
                }
                ids.push(id as i64);
            }
            assert!(left.len() < 590 && left != texts.as_slice());
            let rows = Int64Array::from(ids);
            expected.push((left, arrow_select::take::take_record_batch(&before, &rows).unwrap()));
        }
        for threads in 1..=3 {
            shell.ok(&format!(
                "in --output-dir out{threads} --unit line {SURE} --threads {threads}"
            ));
            for ((texts, rows), name) in expected.iter().zip(["a.parquet", "x/b.parquet"]) {
                let found = read(&shell, &format!("out{threads}/in/{name}"));
                assert_eq!(found.schema().fields(), rows.schema().fields());
                assert_eq!(&texts_of(&found), texts);
                assert_eq!(found.column(0), rows.column(0));
                assert_eq!(found.column(2), rows.column(2));
            }
        }
        // In one file, and against a filter of the same documents.
        shell.ok(&format!("in -o one.parquet --unit line {SURE}"));
        let found = read(&shell, "one.parquet");
        let all = Vec::from_iter(expected.iter().flat_map(|(texts, _)| texts.clone()));
        assert_eq!(texts_of(&found), all);
        assert_eq!(found.column(0).as_primitive::<Int64Type>().value(0), 0);
        shell.ok(&format!("in --build f --unit line {SURE}"));
        shell.ok("in/a.parquet -o none.parquet --unit line --against f");
        let left = texts_of(&read(&shell, "none.parquet"));
        assert!(left.iter().flatten().all(|text| text.trim().is_empty()), "{left:?}");
        // A limit for a text is one here too.
        shell.error("in -o two.parquet --max-record 10k", &["--max-record"]);
    }
}

#[test]
fn an_empty_table_stays_one() {
    let shell = Shell::new();
    write(&shell, "in.parquet", &table(&[], 0));
    shell.ok("in.parquet --output-dir out");
    assert_eq!(read(&shell, "out/in.parquet").num_rows(), 0);
    write(&shell, "in.parquet", &table(&[None, None], 0));
    let report = shell.report("in.parquet --output-dir out --state s");
    assert_eq!((&report["documents"], &report["without_text"]), (&2.into(), &2.into()));
    assert_eq!(read(&shell, "out/in.parquet").num_rows(), 2);
    assert_eq!(
        shell.report("in.parquet --output-dir out --state s")["inputs_skipped"],
        1
    );
}

#[test]
fn what_is_no_table_of_texts_is_an_error() {
    let shell = Shell::new();
    write(&shell, "in.parquet", &table(&[Some("a".into())], 0));
    write(&shell, "view.parquet", &table(&[Some("a".into())], 2));
    shell.write("in.jsonl", lines(&["a"]));
    shell.error("in.parquet", &["in.parquet", "--output", ".parquet"]);
    shell.error("in.parquet -o out.jsonl", &["in.parquet", "--output", ".parquet"]);
    shell.error("in.jsonl -o out.parquet", &["out.parquet", "no input"]);
    shell.error("in.parquet -o out --text id", &["in.parquet", "the column id", "Int64"]);
    shell.error(
        "in.parquet -o out --text words",
        &["in.parquet", "no column words", "--text"],
    );
    let twice = table(&[Some("a".into())], 0).project(&[0, 1, 1]).unwrap();
    write(&shell, "twice.parquet", &twice);
    shell.error(
        "twice.parquet -o out",
        &["twice.parquet: several columns have the name text"],
    );
    shell.error("in.parquet -o out --annotate x", &["in.parquet", "--annotate"]);
    shell.error(
        "in.parquet in.jsonl -o out.parquet",
        &["in.parquet", "in.jsonl", "one output"],
    );
    shell.error(
        "in.parquet view.parquet -o out.parquet",
        &["view.parquet", "same columns"],
    );
    shell.ok("in.parquet in.jsonl --output-dir out --text /text");
    assert_eq!(texts_of(&read(&shell, "out/in.parquet")), [Some("a".into())]);
    assert_eq!(shell.read("out/in.jsonl"), b"");
    let whole = shell.read("in.parquet");
    for len in [4, 100, whole.len() - 1] {
        shell.write("cut.parquet", &whole[..len]);
        shell.error("cut.parquet -o out.parquet", &["cut.parquet"]);
    }
    for at in (4..whole.len()).step_by(7) {
        let mut broken = whole.clone();
        broken[at] ^= 0x55;
        shell.write("broken.parquet", &broken);
        let output = shell.run("broken.parquet -o out.parquet");
        assert!(
            [Some(0), Some(2)].contains(&output.status.code()),
            "{at}: {}",
            stderr(&output)
        );
    }
    assert!(!shell.path("out.parquet").exists() || shell.names(".").iter().all(|name| !name.ends_with(".part")));
}
