//! The C library's functions, and those that stand before them.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function of the C library, which is looked up when it is called first.
pub struct Real {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Real {
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicUsize::new(0) }
    }

    /// The function.
    ///
    /// # Safety
    /// `F` is the type of a pointer to the function of this name.
    pub unsafe fn get<F: Copy>(&self) -> F {
        assert!(size_of::<F>() == size_of::<usize>(), "a function is a pointer");
        let mut address = self.address.load(Ordering::Relaxed);
        if address == 0 {
            // SAFETY: the name is a C string.
            address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
            assert!(address != 0, "the C library lacks {:?}", self.name);
            self.address.store(address, Ordering::Relaxed);
        }
        // SAFETY: as the caller promises, and it is as large.
        unsafe { std::mem::transmute_copy(&address) }
    }
}

/// Calls the C library's function of a name with these arguments, which have these types.
macro_rules! real {
    ($name:ident($($argument:expr => $type:ty),*) -> $result:ty) => {{
        static REAL: $crate::real::Real =
            $crate::real::Real::new(match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("names have no zeros"),
            });
        // SAFETY: it is the function of this name, and gets the program's arguments.
        unsafe { REAL.get::<unsafe extern "C" fn($($type),*) -> $result>()($($argument),*) }
    }};
}
pub(crate) use real;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("where addresses have 32 bits, functions whose names end with 64 have other arguments");

/// Functions of the C library that do something else for files of records, under each of their names. `$real`
/// calls the C library's own, with the program's arguments.
macro_rules! instead {
    (one $name:ident ($($argument:ident: $type:ty),*) -> $result:ty, $real:ident => $body:expr) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            let $real = || $crate::real::real!($name($($argument => $type),*) -> $result);
            $body
        }
    };
    ([$($name:ident),+] $arguments:tt -> $result:ty, $real:ident => $body:expr) => {
        $($crate::real::instead!(one $name $arguments -> $result, $real => $body);)+
    };
}
pub(crate) use instead;
