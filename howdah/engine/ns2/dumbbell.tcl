# SPDX-License-Identifier: Apache-2.0
# A dumbbell in ns-2: ns dumbbell.tcl DATA OUT. docs/ns2.md describes both.
#
# DATA has one Tcl list a line: a word, perhaps a name, and pairs of names and values. Nothing of it is evaluated. Times
# are seconds, rates bits a second, sizes bytes. OUT is a directory for acks.tr, queue.tsv, info.tsv, flows.tsv and
# links.tsv.

set FAST 1e12;           # bits a second of a link that stands for none
set UNLIMITED 1000000;   # packets of a queue that never drops
set TRACED {maxseq_ ack_ cwnd_ ssthresh_ srtt_ nrexmitpack_ nrexmit_ nackpack_}

proc read_data {file} {
    global run path collect hosts flows host flow
    set hosts {}
    set flows {}
    set channel [open $file]
    fconfigure $channel -encoding utf-8
    while {[gets $channel line] >= 0} {
        set word [lindex $line 0]
        if {$word eq "run" || $word eq "path" || $word eq "collect"} {
            array set $word [lrange $line 1 end]
        } elseif {$word eq "host"} {
            lappend hosts [lindex $line 1]
            set host([lindex $line 1]) [lrange $line 2 end]
        } elseif {$word eq "flow"} {
            lappend flows [lindex $line 1]
            set flow([lindex $line 1]) [lrange $line 2 end]
        } elseif {$word ne "" && [string index $word 0] ne "#"} {
            error "unknown word $word in $file"
        }
    }
    close $channel
}

proc output {name} {
    global directory
    return [open [file join $directory $name] w]
}

# One direction of a link. Its queue drops only where a limit is given.
proc wire {from to rate delay} {
    global ns UNLIMITED
    $ns simplex-link $from $to $rate $delay DropTail
    $ns queue-limit $from $to $UNLIMITED
    return [$ns monitor-queue $from $to ""]
}

# A bottleneck, forward or back. In packets ns-2's drop-tail queue takes one packet fewer than its limit, beside the one
# that is being sent; in bytes it drops what would make it reach the limit.
proc bottleneck {from to rate limit unit} {
    global ns
    $ns simplex-link $from $to $rate 0 DropTail
    set queue [[$ns link $from $to] queue]
    if {$unit eq "bytes"} {
        $queue set queue_in_bytes_ true
        $queue set mean_pktsize_ 1
        $queue set limit_ [expr {$limit + 1}]
    } else {
        $queue set limit_ $limit
    }
    return [$ns monitor-queue $from $to ""]
}

proc make_network {} {
    global ns path hosts host node monitor FAST
    foreach name {left middle right back} { set node($name) [$ns node] }
    set monitor(forward) [bottleneck $node(left) $node(middle) $path(rate) $path(limit) $path(unit)]
    wire $node(middle) $node(right) $FAST 0
    if {$path(reverse_rate) eq "none"} {
        set monitor(reverse) [wire $node(right) $node(back) $FAST 0]
    } else {
        set monitor(reverse) [bottleneck $node(right) $node(back) $path(reverse_rate) $path(reverse_limit) $path(unit)]
    }
    wire $node(back) $node(left) $FAST 0
    if {$path(loss) > 0} {
        set generator [new RNG]
        $generator seed $path(seed)
        set uniform [new RandomVariable/Uniform]
        $uniform use-rng $generator
        set losses [new ErrorModel]
        $losses unit pkt
        $losses set rate_ $path(loss)
        $losses ranvar $uniform
        $losses drop-target [new Agent/Null]
        $ns lossmodel $losses $node(middle) $node(right)
    }
    foreach name $hosts {
        array set own $host($name)
        set router $node($own(router))
        set node($name) [$ns node]
        set rate [expr {$own(rate) eq "none" ? $FAST : $own(rate)}]
        set monitor($name,out) [wire $node($name) $router $rate 0]
        set monitor($name,in) [wire $router $node($name) $FAST $own(delay)]
    }
}

proc make_flow {id} {
    global ns flow node sender acks TRACED number start
    array set own $flow($id)
    set tcp [new Agent/$own(agent)]
    set sink [new Agent/$own(sink)]
    $tcp set packetSize_ $own(payload)
    $tcp set tcpip_base_hdr_size_ $own(header)
    $tcp set windowInitOption_ 1
    $tcp set windowInit_ $own(initial_window)
    $tcp set window_ $own(window)
    $tcp set fid_ $id
    $sink set packetSize_ $own(header)
    foreach {name value} $own(settings) {
        if {[catch {$tcp set $name}]} { error "Agent/$own(agent) has no instance variable $name" }
        $tcp set $name $value
    }
    foreach {name value} $own(sink_settings) { $sink set $name $value }
    $ns attach-agent $node($own(from)) $tcp
    $ns attach-agent $node($own(to)) $sink
    $ns connect $tcp $sink
    if {$own(congestion) ne "none"} { $tcp select_ca $own(congestion) }
    set trace [new Trace/Var]
    $trace attach $acks
    foreach name $TRACED { $tcp trace $name $trace }
    set sender($id) $tcp
    set number($tcp) $id
    $ns at $own(start) "start_flow $id"
    $ns at $own(stop) "stop_flow $id"
}

proc start_flow {id} {
    global ns flow sender started table
    array set own $flow($id)
    set tcp $sender($id)
    set started($id) [$ns now]
    puts $table "$id\tstart\t[$ns now]\t$tcp\t[$tcp set cwnd_]\t$own(window)"
    if {$own(jump)} {
        # The SYN alone, which makes room for a packet of its own; the data follow when it has been acknowledged (done).
        $tcp advanceby 1
        $tcp advanceby -1
    } elseif {$own(packets) > 0} {
        $tcp advanceby $own(packets)
    } else {
        $tcp advanceby 1000000000
    }
    if {$own(ssthresh) ne "none"} { $tcp set ssthresh_ $own(ssthresh) }
}

# ns-2 calls it when everything that was to be sent has been acknowledged.
Agent/TCP instproc done {} {
    global number
    if {[info exists number($self)]} { flow_done $number($self) }
}

proc flow_done {id} {
    global ns flow jumped stopped
    array set own $flow($id)
    if {!$own(jump) || [info exists jumped($id)] || [info exists stopped($id)]} { return }
    set jumped($id) 1
    set round [handshake $id]
    for {set packet 0} {$packet < $own(packets)} {incr packet} {
        $ns at [expr {[$ns now] + $round * $packet / $own(packets)}] "advance $id"
    }
}

# The round trip of the SYN that was acknowledged: each one before it took a timeout, of which the next lasts twice as long.
proc handshake {id} {
    global ns sender started flow
    array set own $flow($id)
    set tcp $sender($id)
    set waited [expr {[$tcp set rtxcur_init_] * (2 ** [$tcp set nrexmitpack_] - 1)}]
    return [expr {max([$ns now] - $started($id) - $waited, $own(rtt))}]
}

proc advance {id} {
    global sender stopped
    if {![info exists stopped($id)]} { $sender($id) advanceby 1 }
}

# No new data; what was sent is still repaired.
proc stop_flow {id} {
    global sender stopped
    set stopped($id) 1
    set tcp $sender($id)
    $tcp advanceby [expr {[$tcp set maxseq_] + 1 - [$tcp set seqno_]}]
}

# Nothing more is sent, not even again, so that the network empties and packets can be counted.
proc quiet {} {
    global flows sender
    foreach id $flows { $sender($id) set window_ 0 }
}

proc read_queue {} {
    global ns monitor queue
    foreach direction {forward reverse} {
        set from $monitor($direction)
        puts $queue "[$ns now]\t$direction\t[$from set size_]\t[$from set pkts_]\t[$from set bdepartures_]\t[$from set pdepartures_]\t[$from set pdrops_]"
    }
}

proc read_flows {} {
    global flows
    foreach id $flows { read_flow $id }
}

# Its n-th reading is at n intervals, and the next one is put down then: events of a whole run would fill the scheduler.
proc every {interval number what} {
    global ns run
    $what
    set next [expr {($number + 1) * $interval}]
    if {$next <= $run(end)} { $ns at $next [list every $interval [expr {$number + 1}] $what] }
}

proc read_flow {id} {
    global ns sender started info
    if {![info exists started($id)]} { return }
    set tcp $sender($id)
    puts $info "[$ns now]\t$id\t[$tcp set cwnd_]\t[$tcp set ssthresh_]\t[$tcp set ack_]\t[$tcp set maxseq_]\t[$tcp set ndatapack_]\t[$tcp set nrexmitpack_]"
}

proc tell_progress {} {
    global ns
    puts "time [$ns now]"
    flush stdout
}

proc finish {} {
    global ns flows hosts monitor table queue info acks sender collect
    if {$collect(queue) > 0} { read_queue }
    if {$collect(info) > 0} { read_flows }
    foreach id $flows {
        set tcp $sender($id)
        puts $table "$id\tend\t[$ns now]\t[$tcp set ndatapack_]\t[$tcp set nrexmitpack_]"
    }
    set links [output links.tsv]
    foreach name [concat {forward reverse} [join [lmap name $hosts { list $name,out $name,in }]]] {
        set from $monitor($name)
        puts $links "$name\t[$from set parrivals_]\t[$from set pdepartures_]\t[$from set pdrops_]\t[$from set pkts_]"
    }
    foreach channel [list $links $table $queue $info $acks] { close $channel }
    puts "finished"
    exit 0
}

lassign $argv data directory
read_data $data
set tcl_precision 17
set ns [new Simulator]
set acks [output acks.tr]
set queue [output queue.tsv]
set info [output info.tsv]
set table [output flows.tsv]
puts $table "0\trelease\t[ns-version]"
make_network
foreach id $flows { make_flow $id }
if {$collect(queue) > 0} { $ns at 0 "every $collect(queue) 0 read_queue" }
if {$collect(info) > 0} { $ns at 0 "every $collect(info) 0 read_flows" }
$ns at 0 "every [expr {$run(end) / 50.0}] 0 tell_progress"
$ns at $run(end) quiet
$ns at $run(silent) finish
$ns run
