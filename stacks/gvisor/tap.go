// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const queuePackets = 1024

// tap joins a TAP interface and the stack. Go's poller waits for frames, so nobody spins.
type tap struct {
	file     *os.File
	endpoint *channel.Endpoint
	mtu      uint32
}

func openTap(name string, mtu uint32, hardware tcpip.LinkAddress) (*tap, error) {
	descriptor, err := tun.OpenTAP(name)
	if err != nil {
		return nil, err
	}
	device := &tap{
		file:     os.NewFile(uintptr(descriptor), name),
		endpoint: channel.New(queuePackets, mtu+header.EthernetMinimumSize, hardware),
		mtu:      mtu,
	}
	device.endpoint.AddNotify(device)
	return device, nil
}

// WriteNotify implements channel.Notification: what the stack sends leaves at once.
func (device *tap) WriteNotify() {
	for packet := device.endpoint.Read(); packet != nil; packet = device.endpoint.Read() {
		view := packet.ToView()
		_, err := device.file.Write(view.AsSlice())
		view.Release()
		packet.DecRef()
		if err != nil {
			fail(err)
		}
	}
}

// read gives the stack every frame that comes.
func (device *tap) read() {
	frame := make([]byte, device.mtu+header.EthernetMinimumSize)
	for {
		length, err := device.file.Read(frame)
		if err != nil {
			fail(err)
		}
		content := buffer.MakeWithData(append([]byte(nil), frame[:length]...))
		packet := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: content})
		device.endpoint.InjectInbound(0, packet)
		packet.DecRef()
	}
}
