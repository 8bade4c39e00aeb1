// SPDX-License-Identifier: Apache-2.0

// A TCP receiver or sender on gVisor's netstack. docs/stacks.md says what it is told and what it has to say.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/link/ethernet"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	nic         = 1
	unsupported = 127
	readBytes   = 1 << 20
	writeBytes  = 1 << 16
	// A path of 400 Mbit/s, 100 ms and its buffer hold 10 MB; netstack's own default is less.
	sendBufferBytes = 32 << 20
)

// told is a variable of the environment; the program ends where it is missing.
func told(name string) string {
	value := os.Getenv(name)
	if value == "" {
		fail(fmt.Errorf("%s is not set", name))
	}
	return value
}

func number(name string) int {
	value, err := strconv.Atoi(told(name))
	if err != nil {
		fail(fmt.Errorf("%s: %w", name, err))
	}
	return value
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func address(name string) tcpip.Address {
	found := net.ParseIP(told(name)).To4()
	if found == nil {
		fail(fmt.Errorf("%s is no address", name))
	}
	return tcpip.AddrFrom4([4]byte(found))
}

// newStack has SACK, and a receive buffer that is tuned.
func newStack(device *tap) *stack.Stack {
	made := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack := tcpip.TCPSACKEnabled(true)
	tuned := tcpip.TCPModerateReceiveBufferOption(true)
	for _, option := range []tcpip.SettableTransportProtocolOption{&sack, &tuned} {
		if err := made.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			fail(errors.New(err.String()))
		}
	}
	buffer := tcpip.TCPSendBufferSizeRangeOption{Min: 1 << 12, Default: sendBufferBytes, Max: sendBufferBytes}
	if err := made.SetTransportProtocolOption(tcp.ProtocolNumber, &buffer); err != nil {
		fail(errors.New(err.String()))
	}
	if err := made.CreateNIC(nic, ethernet.New(device.endpoint)); err != nil {
		fail(errors.New(err.String()))
	}
	own := tcpip.ProtocolAddress{
		Protocol: ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{
			Address: address("STACK_ADDRESS"), PrefixLen: number("STACK_PREFIX"),
		},
	}
	if err := made.AddProtocolAddress(nic, own, stack.AddressProperties{}); err != nil {
		fail(errors.New(err.String()))
	}
	subnet := own.AddressWithPrefix.Subnet()
	everything := tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4([4]byte{}), PrefixLen: 0}.Subnet()
	made.SetRouteTable([]tcpip.Route{
		{Destination: subnet, NIC: nic},
		{Destination: everything, Gateway: address("STACK_GATEWAY"), NIC: nic},
	})
	return made
}

// receive takes all data of one connection and says how much it was.
func receive(listener *gonet.TCPListener) {
	connection, err := listener.Accept()
	if err != nil {
		fail(err)
	}
	fmt.Println("connected")
	listener.Close()
	received, expected, block := 0, number("STACK_BYTES"), make([]byte, readBytes)
	for {
		count, err := connection.Read(block)
		if received < expected && received+count >= expected {
			fmt.Println("all")
		}
		received += count
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fail(err)
		}
	}
	fmt.Printf("bytes %d\n", received)
	connection.Close()
}

// send connects when it is told to start, and writes until everything is written or it is told to stop.
func send(own *stack.Stack) {
	words := make(chan string)
	go hear(words)
	if <-words != "start" {
		fmt.Println("bytes 0")
		return
	}
	here := tcpip.FullAddress{NIC: nic, Addr: address("STACK_ADDRESS"), Port: uint16(number("STACK_PORT"))}
	peer := tcpip.FullAddress{NIC: nic, Addr: address("STACK_PEER"), Port: uint16(number("STACK_PEER_PORT"))}
	connection, err := gonet.DialTCPWithBind(context.Background(), own, here, peer, ipv4.ProtocolNumber)
	if err != nil {
		fail(err)
	}
	fmt.Println("connected")
	var written atomic.Int64
	done := make(chan bool)
	go write(connection, int64(number("STACK_BYTES")), &written, done)
	for {
		select {
		case <-done:
			connection.CloseWrite()
			fmt.Printf("bytes %d\n", written.Load())
			done = nil
		case word, more := <-words:
			if !more { // the standard input has ended
				if done != nil {
					fmt.Printf("bytes %d\n", written.Load())
				}
				return
			}
			if word == "stop" {
				connection.SetWriteDeadline(time.Now())
			}
		}
	}
}

// write ends at so many bytes, or at the deadline where there is no such number.
func write(connection *gonet.TCPConn, bytes int64, written *atomic.Int64, done chan<- bool) {
	block := make([]byte, writeBytes)
	for bytes == 0 || written.Load() < bytes {
		size := int64(len(block))
		if bytes > 0 {
			size = min(size, bytes-written.Load())
		}
		count, err := connection.Write(block[:size])
		written.Add(int64(count))
		if errors.Is(err, os.ErrDeadlineExceeded) || isTimeout(err) {
			break
		}
		if err != nil {
			fail(err)
		}
	}
	done <- true
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

// hear passes on the lines of the standard input, and closes the channel at its end.
func hear(words chan<- string) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words <- lines.Text()
	}
	close(words)
}

// useAlgorithm sets the congestion control of connections to come.
func useAlgorithm(own *stack.Stack, name string) {
	chosen := tcpip.CongestionControlOption(name)
	if err := own.SetTransportProtocolOption(tcp.ProtocolNumber, &chosen); err != nil {
		fmt.Printf("unsupported there is no congestion control %s\n", name)
		os.Exit(unsupported)
	}
}

func main() {
	role := told("STACK_ROLE")
	if role != "receive" && role != "send" {
		fmt.Printf("unsupported it does not %s\n", role)
		os.Exit(unsupported)
	}
	hardware, err := net.ParseMAC(told("STACK_MAC"))
	if err != nil {
		fail(err)
	}
	device, err := openTap(told("STACK_INTERFACE"), uint32(number("STACK_MTU")), tcpip.LinkAddress(hardware))
	if err != nil {
		fail(err)
	}
	own := newStack(device)
	if role == "send" {
		useAlgorithm(own, told("STACK_ALGORITHM"))
		go device.read()
		fmt.Println("ready")
		send(own)
		return
	}
	here := tcpip.FullAddress{NIC: nic, Port: uint16(number("STACK_PORT"))}
	listener, err := gonet.ListenTCP(own, here, ipv4.ProtocolNumber)
	if err != nil {
		fail(err)
	}
	go device.read()
	go receive(listener)
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
}
