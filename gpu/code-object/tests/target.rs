//! Tests names of targets, and which code runs on which device.

mod common;

use common::target;
use hipr_code_object::{Fit, Target, TargetError};

#[test]
fn every_spelling_gives_the_same_target() {
    let expected = Target { processor: "gfx90a".to_owned(), sramecc: Some(true), xnack: Some(false) };
    for text in [
        "gfx90a:sramecc+:xnack-",
        "gfx90a:xnack-:sramecc+",
        "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
        "amdgcn-amd-amdhsa-unknown-gfx90a:sramecc+:xnack-",
        "amdgcn-amd-amdhsa-gfx90a:sramecc+:xnack-",
        "amdgpu9.0a-amd-amdhsa-unknown-gfx90a:sramecc+:xnack-",
    ] {
        assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
    }
    assert_eq!(Target::of_entry("hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"), Ok(expected.clone()));
    assert_eq!(Target::of_entry("hip-amdgcn-amd-amdhsa-gfx90a:sramecc+:xnack-"), Ok(expected.clone()));
    assert_eq!(expected.to_string(), "gfx90a:sramecc+:xnack-");
}

#[test]
fn generic_names_keep_their_dashes() {
    for text in
        ["gfx9-4-generic", "amdgcn-amd-amdhsa--gfx9-4-generic", "amdgpu9.4-amd-amdhsa-unknown-gfx9-4-generic"]
    {
        let target = target(text);
        assert_eq!(target.to_string(), "gfx9-4-generic", "{text}");
        assert!(target.is_generic());
    }
}

#[test]
fn what_is_no_target_says_why() {
    for text in
        ["", "host-x86_64-unknown-linux-gnu-", "amdgcn-amd-amdhsa--", "gfx", "gfxabc", "gfx9 42", "sm_90"]
    {
        assert_eq!(text.parse::<Target>(), Err(TargetError::NoProcessor(text.to_owned())), "{text}");
    }
    for feature in ["xnack", "xnack*", "", "wave+", "xnack+"] {
        let text = format!("gfx90a:xnack+:{feature}");
        assert_eq!(text.parse::<Target>(), Err(TargetError::Feature(feature.to_owned())), "{text}");
    }
    assert!(Target::of_entry("host").is_err());
    assert!(Target::of_entry("hip-spirv64-amd-amdhsa--amdgcnspirv").is_err());
}

#[test]
fn code_fits_its_processor_and_its_settings() {
    let mi300 = target("gfx942:sramecc+:xnack-");
    let exact = |settings| Some(Fit::Exact { settings });
    for (code, fit) in [
        ("gfx942", exact(0)),
        ("gfx942:xnack-", exact(1)),
        ("gfx942:sramecc+:xnack-", exact(2)),
        ("gfx942:xnack+", None),
        ("gfx942:sramecc-:xnack-", None),
        ("gfx9-4-generic", Some(Fit::Generic { settings: 0 })),
        ("gfx9-4-generic:xnack-", Some(Fit::Generic { settings: 1 })),
        ("gfx9-4-generic:xnack+", None),
        ("gfx9-generic", None),
        ("gfx90a", None),
        ("gfx94", None),
    ] {
        assert_eq!(target(code).runs_on(&mi300), fit, "{code}");
    }
    // A device without the setting does not run code that was compiled for one.
    assert_eq!(target("gfx942:xnack-").runs_on(&target("gfx942")), None);
    // Exact code is better than generic code, more settings are better than fewer.
    assert!(Fit::Exact { settings: 0 } > Fit::Generic { settings: 2 });
    assert!(Fit::Exact { settings: 1 } > Fit::Exact { settings: 0 });
}

#[test]
fn generic_code_runs_on_its_family() {
    for (code, device) in [
        ("gfx9-generic", "gfx906"),
        ("gfx9-generic", "gfx90c"),
        ("gfx10-1-generic", "gfx1012"),
        ("gfx10-3-generic", "gfx1030"),
        ("gfx11-generic", "gfx1151"),
        ("gfx12-generic", "gfx1201"),
    ] {
        assert!(target(code).runs_on(&target(device)).is_some(), "{code} on {device}");
        assert_eq!(target(device).runs_on(&target(code)), None, "{device} on {code}");
    }
    for (code, device) in
        [("gfx9-generic", "gfx908"), ("gfx9-generic", "gfx90a"), ("gfx11-generic", "gfx1201")]
    {
        assert_eq!(target(code).runs_on(&target(device)), None, "{code} on {device}");
    }
}
