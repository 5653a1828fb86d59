//! Devices without a GPU: [`null`] computes nothing, [`script`] follows a test. [`hipr_device`] has the contract.

pub mod null;
pub mod script;
