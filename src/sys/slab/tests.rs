use super::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

macro_rules! test_type {
    ($name:ident, $index:literal, $value:ty) => {
        #[allow(dead_code)]
        struct $name($value);
        impl Slot for $name {
            const INFO: &'static TypeInfo = {
                static INFO: TypeInfo = TypeInfo { name: stringify!($name), index: $index };
                &INFO
            };
            fn slab() -> &'static Slab<Self> {
                static SLAB: Slab<$name> = Slab::new();
                &SLAB
            }
        }
    };
}
test_type!(Apple, 40, Arc<()>);
test_type!(Pear, 41, Arc<()>);

#[test]
fn wrong_type_null_misaligned_and_dead_are_refused() {
    let witness = Arc::new(());
    let apple = Apple::slab().insert(Apple(Arc::clone(&witness)));
    let pointer = apple.as_ptr();
    // SAFETY: every pointer below is NULL or a cell.
    unsafe {
        assert!(check(pointer).is_ok());
        assert_eq!(check::<Pear>(pointer.cast()).err(), Some(Refused::Bad));
        assert_eq!(check::<Apple>(ptr::null()).err(), Some(Refused::Bad));
        assert_eq!(check::<Apple>(pointer.byte_add(8)).err(), Some(Refused::Bad));
        check(pointer).unwrap().retain();
        assert!(check(pointer).unwrap().release().is_none());
        assert!(check(pointer).unwrap().release().is_some());
        assert_eq!(check::<Apple>(pointer).err(), Some(Refused::Bad));
    }
    assert_eq!((Arc::strong_count(&witness), Apple::slab().live()), (1, 0));
}

#[test]
fn a_second_call_is_busy_and_a_free_during_a_call_waits_for_its_end() {
    let witness = Arc::new(());
    let pointer = Pear::slab().insert(Pear(Arc::clone(&witness))).as_ptr();
    // SAFETY: the cell is live until the last line.
    unsafe {
        let call = Cell::lock(pointer).unwrap();
        assert_eq!(Cell::lock(pointer).err(), Some(Refused::Busy));
        assert!(Cell::free(pointer).unwrap().is_none(), "the running call must free it");
        assert_eq!(Arc::strong_count(&call.0), 2);
        drop(call);
        assert_eq!(Arc::strong_count(&witness), 1);
        assert_eq!(Cell::free(pointer).err(), Some(Refused::Bad));
    }
}

#[test]
fn a_panic_during_a_call_poisons_and_only_free_works_after() {
    // Of its own type: what another test looks at after its end must not come back as this one's.
    test_type!(Peach, 46, Arc<()>);
    let pointer = Peach::slab().insert(Peach(Arc::new(()))).as_ptr().addr();
    let at = move || pointer as *mut Cell<Peach>;
    // SAFETY: as above.
    let caught = std::panic::catch_unwind(move || unsafe {
        let _call = Cell::lock(at()).unwrap();
        panic!("inside");
    });
    assert!(caught.is_err());
    // SAFETY: as above.
    unsafe {
        assert_eq!(Cell::lock(at()).err(), Some(Refused::Poisoned));
        assert!(Cell::free(at()).unwrap().is_some());
    }
}

/// Both sides see the value's end only when they have left it: the one that frees tells a running call to end, and
/// that one ends the value.
#[test]
fn a_value_outlasts_whoever_looks_at_it_beside_a_call() {
    static GO_ON: AtomicBool = AtomicBool::new(false);
    static GONE: AtomicBool = AtomicBool::new(false);
    struct Fig([u64; 2]);
    impl Drop for Fig {
        fn drop(&mut self) {
            assert_eq!(self.0, [7, 7]);
            GONE.store(true, Ordering::SeqCst);
        }
    }
    impl Slot for Fig {
        const INFO: &'static TypeInfo = {
            static INFO: TypeInfo = TypeInfo { name: "Fig", index: 44 };
            &INFO
        };
        fn slab() -> &'static Slab<Self> {
            static SLAB: Slab<Fig> = Slab::new();
            &SLAB
        }
        fn interrupt(_: &Cell<Self>) {
            GO_ON.store(true, Ordering::SeqCst);
            look();
        }
    }
    fn look() {
        for _ in 0..2_000 {
            assert!(!GONE.load(Ordering::SeqCst), "dropped while it is looked at");
            std::thread::yield_now();
        }
    }
    fence::init();
    let at = || Fig::slab().insert(Fig([7, 7])).as_ptr().addr();

    let running = at();
    // SAFETY: the cell is live until the call ends, at the end of the scope.
    let call = unsafe { Cell::lock(running as *const Cell<Fig>) }.unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: the only free of this cell.
            let _ = unsafe { Cell::free(running as *const Cell<Fig>) }.unwrap();
        });
        while !GO_ON.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        drop(call);
    });
    assert!(GONE.swap(false, Ordering::SeqCst));

    let idle = at();
    // SAFETY: the cell is live until the free below.
    let visit = unsafe { visit(idle as *const Cell<Fig>) }.unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: the only free of this cell.
            assert!(unsafe { Cell::free_in_place(idle as *const Cell<Fig>, false) }.is_ok());
        });
        look();
        drop(visit);
    });
    assert!(GONE.load(Ordering::SeqCst));
    // SAFETY: dead cells may be looked at for ever.
    assert_eq!(unsafe { super::visit(idle as *const Cell<Fig>) }.err(), Some(Refused::Bad));
}

/// The thread whose call ends uses the cell again at once: the one that freed must not end that object too.
#[test]
fn a_free_during_a_call_leaves_the_cells_next_object_alone() {
    test_type!(Quince, 45, Arc<()>);
    fence::init();
    let witness = Arc::new(());
    for _ in 0..200 {
        let pointer = Quince::slab().insert(Quince(Arc::clone(&witness))).as_ptr().addr();
        let call = taken(pointer);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // SAFETY: the only free of this object.
                drop(unsafe { Cell::free(pointer as *const Cell<Quince>) });
            });
            // SAFETY: cells are never unmapped; the mark comes sooner or later.
            while unsafe { (*(pointer as *const Cell<Quince>)).header.count.load(Ordering::Acquire) } != FREED
            {
                std::thread::yield_now();
            }
            drop(call);
            let next = Quince::slab().insert(Quince(Arc::clone(&witness))).as_ptr().addr();
            std::thread::yield_now();
            // SAFETY: nobody else knows this object.
            let freed = unsafe { Cell::free(next as *const Cell<Quince>) };
            assert!(freed.is_ok_and(|value| value.is_some()));
        });
    }
    assert_eq!(Arc::strong_count(&witness), 1);

    fn taken(pointer: usize) -> Exclusive<'static, Quince> {
        // SAFETY: the cell has just been made.
        unsafe { Cell::lock(pointer as *const Cell<Quince>) }.unwrap()
    }
}

/// Races the end of a call with a free, many rounds: exactly one of the two drops the value.
#[test]
fn free_races_with_the_end_of_a_call() {
    test_type!(Plum, 42, Arc<()>);
    fence::init();
    let witness = Arc::new(());
    for _ in 0..2_000 {
        let pointer = Plum::slab().insert(Plum(Arc::clone(&witness))).as_ptr().addr();
        let locked = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: the other thread waits for `locked`, so the cell is live here.
                let call = unsafe { Cell::lock(pointer as *mut Cell<Plum>) };
                locked.store(true, Ordering::Release);
                drop(call);
            });
            scope.spawn(|| {
                while !locked.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                // SAFETY: the only free of this cell.
                drop(unsafe { Cell::free(pointer as *mut Cell<Plum>) });
            });
        });
    }
    assert_eq!(Arc::strong_count(&witness), 1);
    assert_eq!(Plum::slab().live(), 0);
}
