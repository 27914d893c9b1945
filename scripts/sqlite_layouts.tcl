# Read by SQLite's tester.tcl: has tests that look at files themselves find a database with a layout where it is, and
# its journal and log under their names. FLASHGRAIN_TEST_START is the offset of the database in its file.

proc flashgrain_is_laid {name} {
  if {[catch { set channel [flashgrain_open $name rb] }]} { return 0 }
  set magic [read $channel 15]
  close $channel
  expr {$magic eq "Flashgrain file"}
}

# The name of a file, which a layout may have changed.
proc flashgrain_name {name} {
  if {[regexp {^(.*)-(journal|wal)$} $name -> database kind] && ![flashgrain_file exists $name]} {
    if {[flashgrain_file exists "$database-grain$kind"]} { return "$database-grain$kind" }
  }
  return $name
}

# The length of a log whose frames are aligned, as SQLite counts: a statement says how large its pages are.
proc flashgrain_log_length {name length} {
  set channel [flashgrain_open $name rb]
  set statement [read $channel 64]
  close $channel
  if {[binary scan $statement a15xiux4wux8wu magic technique page stripe] != 4} { return $length }
  if {$magic ne "Flashgrain file" || $technique != 2} { return $length }
  if {$page == 0} { return [expr {max($length - 4096, 0)}] }
  set first [expr {max($page, $stripe, 4096)}]
  if {$length < $first} { return [expr {min(max($length - 512, 0), 32)}] }
  expr {32 + ($length - $first) / $page * (24 + $page)}
}

# Bytes of a file before the database.
proc flashgrain_start {name} {
  expr {![string match *-grainwal $name] && [flashgrain_is_laid $name] ? $::env(FLASHGRAIN_TEST_START) : 0}
}

rename file flashgrain_file
rename open flashgrain_open
rename seek flashgrain_seek
rename hexio_read flashgrain_hexio_read
rename hexio_write flashgrain_hexio_write
rename md5file flashgrain_md5file

proc md5file {name args} {
  set name [flashgrain_name $name]
  if {[llength $args] == 2} {
    lassign $args offset bytes
    return [flashgrain_md5file $name [expr {$offset + [flashgrain_start $name]}] $bytes]
  }
  flashgrain_md5file $name {*}$args
}

proc file {what args} {
  if {$what in {size exists isfile readable}} {
    set name [flashgrain_name [lindex $args 0]]
    set found [uplevel 1 [list flashgrain_file $what $name]]
    if {$what eq "size" && [string match *-grainwal $name]} { return [flashgrain_log_length $name $found] }
    if {$what eq "size"} {
      set found [expr {max($found - [flashgrain_start $name], 0)}]
    }
    return $found
  }
  if {$what in {delete copy rename}} {
    set names {}
    foreach name $args { lappend names [flashgrain_name $name] }
    if {$what ne "delete" && [regexp -- {-grain(journal|wal)$} [lindex $names end-1] -> kind]} {
      set names [lreplace $names end end [regsub -- {-(journal|wal)$} [lindex $names end] {-grain\1}]]
    }
    set args $names
  }
  uplevel 1 [list flashgrain_file $what {*}$args]
}

proc open {name args} {
  if {[string index $name 0] eq "|"} { return [uplevel 1 [list flashgrain_open $name {*}$args]] }
  set name [flashgrain_name $name]
  set start [flashgrain_start $name]
  set channel [uplevel 1 [list flashgrain_open $name {*}$args]]
  set ::flashgrain_starts($channel) $start
  if {$start && ![string match {*[wa]*} [lindex $args 0]]} { flashgrain_seek $channel $start }
  return $channel
}

proc seek {channel offset {origin start}} {
  if {$origin eq "start" && [info exists ::flashgrain_starts($channel)]} {
    incr offset $::flashgrain_starts($channel)
  }
  flashgrain_seek $channel $offset $origin
}

proc hexio_read {name offset bytes} {
  set name [flashgrain_name $name]
  flashgrain_hexio_read $name [expr {$offset + [flashgrain_start $name]}] $bytes
}

proc hexio_write {name offset hex} {
  set name [flashgrain_name $name]
  flashgrain_hexio_write $name [expr {$offset + [flashgrain_start $name]}] $hex
}
