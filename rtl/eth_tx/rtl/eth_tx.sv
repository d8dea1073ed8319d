// SPDX-License-Identifier: Apache-2.0
//
// Puts the Ethernet header of a reply, with the VLAN tags of its request, before an IP datagram,
// and pads the frame to 60 bytes. The check sequence is the MAC's.
module eth_tx
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        eth_valid,
    output logic        eth_ready,
    input  eth_ctx_t    eth,
    input  logic        eth_v6,
    input  logic [11:0] eth_bytes,  // of the datagram
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
  typedef enum logic [1:0] {E_MAC, E_TAG, E_PASS, E_PAD} state_t;
  state_t state;

  function automatic logic [47:0] bytes_of(logic [47:0] mac);
    bytes_of = {mac[7:0], mac[15:8], mac[23:16], mac[31:24], mac[39:32], mac[47:40]};
  endfunction
  logic [95:0] macs;
  assign macs = {bytes_of(eth.dst_mac), bytes_of(eth.src_mac)};  // swapped
  logic [15:0] ip_type;
  assign ip_type = eth_v6 ? 16'hdd86 : 16'h0008;

  logic [5:0] short_by;  // bytes of padding
  logic [11:0] frame_bytes;
  assign frame_bytes = eth_bytes + 12'd14 + {8'd0, eth.vlans, 2'b00};
  logic piece_valid, piece_ready, piece_last, sent;
  logic [127:0] piece;
  logic [4:0] piece_bytes;
  logic [5:0] pad;
  assign sent = piece_valid && piece_ready;
  packer pieces (
      .clk, .rst, .in_valid(piece_valid), .in_ready(piece_ready), .in_data(piece),
      .in_bytes(piece_bytes), .in_last(piece_last), .out_valid, .out_ready, .out_data, .out_bytes,
      .out_last
  );
  assign short_by = frame_bytes < 12'd60 ? 6'(12'd60 - frame_bytes) : 6'd0;

  always_comb begin
    piece_valid = 1'b1;
    piece = '0;
    piece_bytes = 5'd8;
    piece_last = 1'b0;
    in_ready = 1'b0;
    case (state)
      E_MAC: begin
        // The addresses, and the type or the first tag.
        piece_valid = eth_valid;
        piece = {eth.vlans == 2'd0 ? {16'd0, ip_type} : swap32(eth.vlan0), macs};
        piece_bytes = eth.vlans == 2'd0 ? 5'd14 : 5'd16;
      end
      E_TAG: begin
        piece = eth.vlans == 2'd1 ? {112'd0, ip_type} : {80'd0, ip_type, swap32(eth.vlan1)};
        piece_bytes = eth.vlans == 2'd1 ? 5'd2 : 5'd6;
      end
      E_PASS: begin
        piece_valid = in_valid;
        piece = {64'd0, in_data};
        piece_bytes = {1'b0, in_bytes};
        piece_last = in_last && pad == 6'd0;
        in_ready = piece_ready;
      end
      default: begin
        piece_bytes = pad > 6'd8 ? 5'd8 : {1'b0, pad[3:0]};
        piece_last = pad <= 6'd8;
      end
    endcase
  end
  // The context is needed until its last header piece.
  assign eth_ready = sent && (state == E_TAG || (state == E_MAC && eth.vlans == 2'd0));

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= E_MAC;
    end else if (sent) begin
      case (state)
        E_MAC: begin
          pad <= short_by;
          state <= eth.vlans == 2'd0 ? E_PASS : E_TAG;
        end
        E_TAG: state <= E_PASS;
        E_PASS: if (in_last) state <= pad == 6'd0 ? E_MAC : E_PAD;
        default: begin
          pad <= pad - 6'd8;
          if (piece_last) state <= E_MAC;
        end
      endcase
    end
  end
endmodule
