//! From a batch of Arrow arrays, of whatever integer width and list or text form, to typed columns.

use arrow::array::{Array, ArrayRef, AsArray, ListArray, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::util::display::array_value_to_string;

use crate::error::Fault;
use crate::schema::{Column, Kind};
use crate::stored::{ArrayOf, Cell, Stored};

/// A fault and the row of the batch it is in.
pub(crate) type RowFault = (usize, Fault);

/// The converted and typed column.
pub(crate) fn decoded<T: Stored>(
    batch: &RecordBatch,
    column: &'static Column,
) -> Result<Option<ArrayOf<T>>, RowFault> {
    let array = match column.required {
        true => Some(required(batch, column)?),
        false => optional(batch, column)?,
    };
    Ok(array.map(|array| T::Cell::typed(&array)))
}

/// The converted column, which must be there and free of nulls.
pub(crate) fn required(batch: &RecordBatch, column: &'static Column) -> Result<ArrayRef, RowFault> {
    let fault = |row, found: &str| (row, Fault::new(column.name, found, column.kind.expected()));
    let array = optional(batch, column)?.ok_or_else(|| fault(0, "no such column"))?;
    match first_null(&array) {
        Some(row) if matches!(column.kind, Kind::U32List | Kind::U64List) => Err((
            row,
            Fault::new(column.name, "null", "a list, empty where there is nothing"),
        )),
        Some(row) => Err(fault(row, "null")),
        None => Ok(array),
    }
}

/// The converted column, if the file has it.
pub(crate) fn optional(
    batch: &RecordBatch,
    column: &'static Column,
) -> Result<Option<ArrayRef>, RowFault> {
    let Some(found) = batch.column_by_name(column.name) else {
        return Ok(None);
    };
    // A failed conversion yields null; what was not null before did not fit.
    let options = CastOptions {
        safe: true,
        ..CastOptions::default()
    };
    let array = cast_with_options(found, &column.kind.read(), &options).map_err(|fault| {
        (
            0,
            Fault::new(column.name, fault.to_string(), column.kind.expected()),
        )
    })?;
    if array.null_count() > found.logical_null_count() {
        let row = (0..array.len())
            .find(|&row| array.is_null(row) && !is_null(found, row))
            .unwrap_or(0);
        let value = array_value_to_string(found, row).unwrap_or_default();
        return Err((row, Fault::new(column.name, value, fitting(column.kind))));
    }
    if let Some(lists) = array.as_list_opt::<i32>() {
        check_elements(lists, column)?;
    }
    Ok(Some(array))
}

fn fitting(kind: Kind) -> String {
    match kind {
        Kind::U32 | Kind::U32List => format!("an integer from 0 to {}", u32::MAX),
        Kind::U64 | Kind::U64List => format!("an integer from 0 to {}", u64::MAX),
        Kind::I64 => format!("an integer from 0 to {}", i64::MAX),
        Kind::Name => "text".to_owned(),
    }
}

fn check_elements(lists: &ListArray, column: &'static Column) -> Result<(), RowFault> {
    let Some(nulls) = lists
        .values()
        .nulls()
        .filter(|nulls| nulls.null_count() > 0)
    else {
        return Ok(());
    };
    let offsets = lists.value_offsets();
    for row in 0..lists.len() {
        let (from, to) = (offsets[row] as usize, offsets[row + 1] as usize);
        if let Some(at) = (from..to).find(|&at| nulls.is_null(at)) {
            let found = format!("element {} is null, negative or too large", at - from);
            return Err((row, Fault::new(column.name, found, fitting(column.kind))));
        }
    }
    Ok(())
}

fn first_null(array: &ArrayRef) -> Option<usize> {
    (array.null_count() > 0)
        .then(|| (0..array.len()).find(|&row| array.is_null(row)))
        .flatten()
}

/// Whether a value is null, also by way of a dictionary.
fn is_null(array: &ArrayRef, row: usize) -> bool {
    array
        .logical_nulls()
        .is_some_and(|nulls| nulls.is_null(row))
}
