// SPDX-License-Identifier: Apache-2.0
//
// Joins pieces of 0 to PIECE bytes to a stream of full beats of 8 bytes, one a cycle. The last beat
// of a packet has 0 to 8 bytes, and zeros behind them; it has 0 only where the packet's size is a
// multiple of 8 and its last piece was empty. All waits for `out_ready`, which does not wait for `out_valid`: so whether a piece
// is taken does not depend on whether it makes a beat.
// REQUIRES: bytes of a piece above its size are zero.
module packer #(
    parameter int PIECE = 16   // 8 or 16
) (
    input  logic               clk,
    input  logic               rst,
    input  logic               in_valid,
    output logic               in_ready,
    input  logic [8*PIECE-1:0] in_data,
    input  logic [4:0]         in_bytes,
    input  logic               in_last,
    output logic               out_valid,
    input  logic               out_ready,
    output logic [63:0]        out_data,
    output logic [3:0]         out_bytes,
    output logic               out_last
);
  localparam int HELD = 8 * (PIECE - 1);
  logic [HELD-1:0] held;
  logic [3:0] held_bytes;  // at most PIECE - 1
  logic rest;  // the held bytes are the end of a packet
  logic [HELD+63:0] piece;  // behind what is held; whether it comes is known later
  logic [HELD+63:0] all;    // what is held, and the piece
  logic [4:0] added, total;
  logic carry_1, carry_2, carry_4;
  logic accepts, joins, emits;

  always_comb begin
    piece = (HELD + 64)'(in_data);
    for (int s = 0; s < 4; s++) if (held_bytes[s]) piece = piece << (8 << s);
  end
  // The sum of sizes without a chain of carry cells: whether there is a beat of it is what is needed soonest.
  assign added = joins ? in_bytes : 5'd0;
  assign carry_1 = held_bytes[0] && in_bytes[0];
  assign carry_2 = (held_bytes[1] && in_bytes[1]) || ((held_bytes[1] || in_bytes[1]) && carry_1);
  assign carry_4 = (held_bytes[2] && in_bytes[2]) || ((held_bytes[2] || in_bytes[2]) && carry_2);
  // A piece that the held bytes leave space for: all together at most 23. Where a whole beat is offered without it, it has 1 to 8
  // bytes, whatever the sum: with none it would become the last one.
  assign accepts = !rest && (!held_bytes[3] || (in_bytes[4:3] == 2'd0 && in_bytes[2:0] != 3'd0) || in_bytes == 5'd8);
  assign joins = accepts && in_valid;
  assign all = {64'd0, held} | (joins ? piece : '0);
  assign total[2:0] = {held_bytes[2] ^ added[2] ^ (joins && carry_2), held_bytes[1] ^ added[1] ^ (joins && carry_1),
                       held_bytes[0] ^ added[0]};
  assign total[3] = held_bytes[3] ^ added[3] ^ (joins && carry_4);
  assign total[4] = added[4] || (held_bytes[3] && added[3]) || ((held_bytes[3] || added[3]) && joins && carry_4);
  assign emits = held_bytes[3] || rest || (joins && (in_bytes[4] || in_bytes[3] || carry_4 || in_last));
  assign in_ready = accepts && out_ready;
  assign out_valid = emits;
  assign out_data = all[63:0];
  assign out_bytes = total[4:3] != 2'd0 ? 4'd8 : {1'b0, total[2:0]};
  assign out_last = (rest || (joins && in_last)) && !total[4] && !(total[3] && total[2:0] != 3'd0);

  always_ff @(posedge clk) begin
    if (rst) begin
      held <= '0;
      held_bytes <= '0;
      rest <= 1'b0;
    end else if (out_ready) begin
      // What is less than a beat stays where it is; all above is zero then.
      held <= all[HELD+63:64];
      if (!emits) held[55:0] <= all[55:0];
      held_bytes <= {PIECE > 8 && total[4], emits && total[4:3] == 2'd0 ? 3'd0 : total[2:0]};
      if (emits) rest <= (rest || (joins && in_last)) && !out_last;
    end
  end

`ifdef FORMAL
  `include "packer_formal.svh"
`endif
endmodule
