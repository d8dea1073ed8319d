// SPDX-License-Identifier: Apache-2.0
//
// What a binary opcode means, and whether a header with it is right: as src/protocol/binary.h.
module binary_form
  import wc_pkg::*;
#(
    parameter int KEY_MAX = DEFAULT_KEY_MAX
) (
    input  logic [7:0]  opcode,
    input  logic [15:0] bin_key,     // sizes that the header says
    input  logic [7:0]  bin_extras,
    input  logic [16:0] bin_sum,     // of key and extras
    input  logic [31:0] bin_body,
    output form_t       form,
    input  form_t       form_before,  // what it was a cycle ago: sizes are looked at then
    output op_t         form_op,
    output logic        form_quiet,
    output logic        form_key,    // the reply shows the key
    output logic        form_touch,
    output logic        form_quit,
    output logic        b_valid,
    output logic        b_whole,     // nothing is behind extras and key
    output logic        b_closes,    // nothing after it can be read
    output err_t        b_error
);
  always_comb begin
    form = FORM_UNKNOWN;
    form_op = OP_ERROR;
    form_quiet = 1'b0;
    form_key = 1'b0;
    form_touch = 1'b0;
    form_quit = 1'b0;
    case (opcode)
      8'h00, 8'h09, 8'h0c, 8'h0d: begin
        form = FORM_KEY;
        form_op = OP_GET;
        form_quiet = opcode == 8'h09 || opcode == 8'h0d;
        form_key = opcode == 8'h0c || opcode == 8'h0d;
      end
      8'h01, 8'h11: begin form = FORM_STORE; form_op = OP_SET; form_quiet = opcode[4]; end
      8'h02, 8'h12: begin form = FORM_STORE; form_op = OP_ADD; form_quiet = opcode[4]; end
      8'h03, 8'h13: begin form = FORM_STORE; form_op = OP_REPLACE; form_quiet = opcode[4]; end
      8'h04, 8'h14: begin form = FORM_KEY; form_op = OP_DELETE; form_quiet = opcode[4]; end
      8'h05, 8'h15: begin form = FORM_DELTA; form_op = OP_INCR; form_quiet = opcode[4]; end
      8'h06, 8'h16: begin form = FORM_DELTA; form_op = OP_DECR; form_quiet = opcode[4]; end
      8'h07, 8'h17: begin
        form = FORM_BARE;
        form_op = OP_NOOP;
        form_quiet = opcode[4];
        form_quit = 1'b1;
      end
      8'h08, 8'h18: begin form = FORM_FLUSH; form_op = OP_FLUSH; form_quiet = opcode[4]; end
      8'h0a: begin form = FORM_BARE; form_op = OP_NOOP; end
      8'h0b: begin form = FORM_BARE; form_op = OP_VERSION; end
      8'h0e, 8'h19: begin form = FORM_JOIN; form_op = OP_APPEND; form_quiet = opcode[4]; end
      8'h0f, 8'h1a: begin form = FORM_JOIN; form_op = OP_PREPEND; form_quiet = opcode[4]; end
      8'h1c: begin form = FORM_KEYTIME; form_op = OP_TOUCH; end
      8'h1d, 8'h1e, 8'h23, 8'h24: begin
        form = FORM_KEYTIME;
        form_op = OP_GET;
        form_touch = 1'b1;
        form_quiet = opcode == 8'h1e || opcode == 8'h24;
        form_key = opcode == 8'h23 || opcode == 8'h24;
      end
      default: ;
    endcase
  end
  logic b_sums;   // extras and key fit into the body
  logic b_empty, b_extras;
  assign b_sums = bin_body[31:17] != '0 || bin_sum <= bin_body[16:0];
  assign b_whole = bin_body == {15'd0, bin_sum};
  assign b_empty = bin_key == 16'd0;
  always_comb begin
    case (form_before)
      FORM_KEYTIME: b_extras = bin_extras == 8'd4;
      FORM_STORE: b_extras = bin_extras == 8'd8;
      FORM_DELTA: b_extras = bin_extras == 8'd20;
      FORM_FLUSH: b_extras = bin_extras == 8'd0 || bin_extras == 8'd4;
      default: b_extras = bin_extras == 8'd0;
    endcase
    case (form_before)
      FORM_BARE, FORM_FLUSH: b_valid = b_extras && b_empty && b_whole;
      FORM_KEY, FORM_KEYTIME, FORM_DELTA: b_valid = b_extras && !b_empty && b_whole;
      FORM_STORE, FORM_JOIN: b_valid = b_extras && !b_empty;
      default: b_valid = 1'b0;
    endcase
    b_closes = 1'b0;
    b_error = ERR_UNKNOWN;
    if (!b_sums) begin
      b_closes = 1'b1;
    end else if (bin_body > 32'h4000_0000 || bin_key > 16'(KEY_MAX)) begin
      b_closes = 1'b1;
      b_error = ERR_FORMAT;
    end else if (form_before != FORM_UNKNOWN && !b_valid) begin
      b_closes = 1'b1;
      b_error = ERR_FORMAT;
    end
    if (form_before == FORM_UNKNOWN) b_valid = 1'b0;
    if (!b_sums || bin_key > 16'(KEY_MAX)) b_valid = 1'b0;
  end
endmodule
