// SPDX-License-Identifier: Apache-2.0
//
// Puts the Ethernet header of a reply, with the VLAN tags of its request, before an IP datagram,
// and pads the frame to 60 bytes. The check sequence is the MAC's. The datagram begins at one of
// two places in a beat, so a beat is put together of two with one choice.
// REQUIRES: bytes of a beat above its size are zero.
module eth_tx
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        eth_valid,
    output logic        eth_ready,
    input  eth_ctx_t    eth,
    input  logic        eth_v6,
    input  logic        in_valid,
    output logic        in_ready,
    input  logic [63:0] in_data,
    input  logic [3:0]  in_bytes,
    input  logic        in_last,
    output logic        out_valid,
    input  logic        out_ready,
    output logic [63:0] out_data,
    output logic [3:0]  out_bytes,
    output logic        out_last
);
  // E_REST: bytes of the last beat are left. E_PAD: zeros.
  typedef enum logic [2:0] {E_MAC, E_TAG, E_PASS, E_REST, E_PAD} state_t;
  state_t state;

  function automatic logic [47:0] bytes_of(logic [47:0] mac);
    bytes_of = {mac[7:0], mac[15:8], mac[23:16], mac[31:24], mac[39:32], mac[47:40]};
  endfunction
  logic [95:0] macs;
  assign macs = {bytes_of(eth.dst_mac), bytes_of(eth.src_mac)};  // swapped
  logic [15:0] ip_type;
  assign ip_type = eth_v6 ? 16'hdd86 : 16'h0008;

  logic [47:0] held;       // what goes before the next beat of the datagram; all of it, or the last two bytes
  logic at_6;              // all of it
  logic [3:0] place;       // of the beat in its frame; 8: a later one
  logic [3:0] rest_bytes;  // in E_REST
  logic in_header, sent, ends;
  logic [63:0] part;
  logic [3:0] total, own_bytes;  // of the beat, if it is the last one
  assign in_header = state == E_MAC || state == E_TAG;
  assign part = state == E_PASS ? in_data : 64'd0;
  assign total = in_bytes + (at_6 ? 4'd6 : 4'd2);  // with up to 8 bytes, so at most 14
  assign ends = !in_header && (state != E_PASS || (in_last && total <= 4'd8));
  assign own_bytes = state == E_PASS ? total : state == E_REST ? rest_bytes : 4'd0;

  assign out_valid = state == E_MAC ? eth_valid : state != E_PASS || in_valid;
  assign out_last = ends && place >= 4'd7;
  // A frame's eighth beat has four bytes at least.
  assign out_bytes = !out_last ? 4'd8 : place == 4'd7 && own_bytes < 4'd4 ? 4'd4 : own_bytes;
  assign in_ready = state == E_PASS && out_ready;
  assign sent = out_valid && out_ready;
  always_comb begin
    case (state)
      E_MAC: out_data = macs[63:0];
      E_TAG: out_data = {swap32(eth.vlan0), macs[95:64]};
      default: out_data = at_6 ? {part[15:0], held} : {part[47:0], held[47:32]};
    endcase
  end
  // The context is needed until its last header bytes are taken.
  assign eth_ready = out_ready && (state == E_TAG || (state == E_MAC && eth_valid && eth.vlans == 2'd0));

  always_ff @(posedge clk) begin
    if (sent) begin
      held <= in_header ? {ip_type, state == E_MAC ? macs[95:64] : swap32(eth.vlan1)} : part[63:16];
      if (in_header) at_6 <= eth.vlans != 2'd1;
      rest_bytes <= total - 4'd8;
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      state <= E_MAC;
      place <= '0;
    end else if (sent) begin
      if (out_last) place <= '0;
      else if (!place[3]) place <= place + 4'd1;
      case (state)
        E_MAC: state <= eth.vlans == 2'd0 ? E_PASS : E_TAG;
        E_TAG: state <= E_PASS;
        default: begin
          if (out_last) state <= E_MAC;
          else if (ends) state <= E_PAD;
          else if (in_last) state <= E_REST;
        end
      endcase
    end
  end
endmodule
