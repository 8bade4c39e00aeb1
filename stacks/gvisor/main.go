// SPDX-License-Identifier: Apache-2.0

// A TCP receiver on gVisor's netstack. docs/stacks.md says what it is told and what it has to say.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

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
	received, block := 0, make([]byte, readBytes)
	for {
		count, err := connection.Read(block)
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

func main() {
	if told("STACK_ROLE") != "receive" {
		fmt.Println("unsupported it only receives")
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
