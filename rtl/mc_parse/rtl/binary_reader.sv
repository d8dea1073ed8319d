// SPDX-License-Identifier: Apache-2.0
//
// Reads the binary requests of a datagram, up to 8 bytes a cycle: the header in three, then extras, key
// and value.
module binary_reader
  import wc_pkg::*;
#(
    parameter int KEY_MAX = DEFAULT_KEY_MAX,
    parameter int VALUE_MAX = DEFAULT_VALUE_MAX
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         active,   // the datagram is binary, and there is more of it
    input  logic         room,     // for an operation, its key and its value
    input  logic         ready,    // 8 bytes are there, or all that are left; and room
    input  logic [63:0]  view,
    input  logic [2:0]   at,       // where in their beat they begin
    input  logic [11:0]  left,     // bytes of the datagram that have not been taken
    output reading_t     reading
);
  typedef enum logic [3:0] {S_HEADER, S_SIZES, S_CAS, S_EXTRAS, S_FLUSH, S_INITIAL, S_UNTIL, S_KEY, S_VALUE, S_SKIP} state_t;
  state_t state;

  meta_t m;                 // of the operation in progress
  logic [15:0] bin_key;
  logic [7:0] bin_extras;
  logic [31:0] bin_body;
  logic [11:0] body_left;
  logic no_body;

  // --- What the header's first 8 bytes say is found out while the second ones are read, and what is right about its sizes while the third
  // ones are; so it is used after the header.
  logic bare;               // there is nothing to read: it is wrong, or has no body
  logic [11:0] h_left;      // bytes after the whole header
  form_t h_form, form;
  op_t h_op, form_op;
  err_t h_error, b_error;
  logic h_quiet, h_shows_key, h_touch, h_quit, h_valid, h_whole, h_short, h_closes;
  logic form_quiet, form_key, form_touch, form_quit, b_valid, b_closes;
  logic short_header;       // the header is not all there
  logic no_header;          // it does not begin as one
  logic too_short;          // the body is not
  logic is_last;            // or just so
  logic [16:0] h_sum;
  logic [11:0] h_rest;      // bytes of the value
  always_ff @(posedge clk) h_sum <= {1'b0, bin_key} + {9'd0, bin_extras};  // before the header's end
  assign h_rest = bin_body[11:0] - h_sum[11:0];
  assign h_short = bin_body[31:12] != '0 || h_left < bin_body[11:0];
  binary_form #(.KEY_MAX(KEY_MAX)) forms (
      .opcode(m.opcode), .bin_key, .bin_extras, .bin_sum(h_sum), .bin_body, .form_before(form), .form(h_form), .form_op(h_op),
      .form_quiet(h_quiet), .form_key(h_shows_key), .form_touch(h_touch), .form_quit(h_quit), .b_valid(h_valid), .b_whole(h_whole),
      .b_closes(h_closes), .b_error(h_error)
  );

  // A compare-and-swap, of all three storage commands. The CAS id has been read before the operation is emitted.
  logic has_cas;
  assign has_cas = m.cas != 64'd0;

  // --- Steps.
  logic go8;
  assign go8 = active && ready;
  // What is taken of the key, or of the body, in this cycle, and whether these are its last bytes.
  logic [3:0] body_take, key_take;
  logic body_ends, key_ends, no_value;
  logic [11:0] body_starts;
  assign body_starts = bare ? bin_body[11:0] : body_left;  // without its extras, or all of one that is skipped
  logic wants, take_ends, waits;
  logic long_extras;          // of 8 bytes at least
  logic [3:0] take_bytes;
  logic emit, push_key, push_value;
  logic stops, quits;       // nothing more is read: after the operation that is emitted, or after none
  meta_t e;                 // the operation that is emitted
  assign reading = '{wants: wants, take_bytes: take_bytes, take_ends: take_ends, emit: emit, op: e, ends_value: 1'b0,
                     quits: quits, push_key: push_key, key_part: key_take, push_value: push_value, value_part: body_take};
  // With take_ends, of each state's number, not of the one that is chosen by the state.
  assign waits = state == S_FLUSH || (bare && (state == S_EXTRAS || state == S_KEY));
  assign wants = active && !waits;
  assign take_ends = active && !waits && (
      (state == S_EXTRAS && long_extras) || ((state == S_EXTRAS || state == S_UNTIL) && at[2]) || (state == S_KEY && reach_end(at, key_take)) ||
      ((state == S_VALUE || state == S_SKIP) && reach_end(at, body_take)) ||
      state == S_HEADER || state == S_SIZES || state == S_CAS || state == S_INITIAL);
  always_comb begin
    take_bytes = 4'd8;
    emit = 1'b0;
    e = m;
    e.cas_cmp = has_cas;
    if (has_cas && (m.op == OP_ADD || m.op == OP_REPLACE)) e.op = OP_SET;
    stops = 1'b0;
    quits = 1'b0;
    push_key = 1'b0;
    push_value = 1'b0;
    case (state)
      S_SIZES: quits = active && (short_header || no_header);  // it may have ended with its first 8 bytes
      S_EXTRAS, S_KEY:
      if (bare) begin
        emit = active && room;
        stops = emit && (form_quit || b_closes || (!b_valid && is_last) || too_short);
        if (!b_valid || too_short) begin
          e.op = OP_ERROR;
          e.err = b_valid ? ERR_FORMAT : b_error;
          e.quiet = 1'b0;
        end
      end else if (state == S_EXTRAS) begin
        if (!long_extras) take_bytes = 4'd4;
      end else if (go8) begin
        push_key = 1'b1;
        take_bytes = key_take;
        e.kbeats = m.kbeats + 6'd1;
        emit = key_ends && no_value;
      end
      S_FLUSH: emit = room;
      S_UNTIL: take_bytes = 4'd4;
      S_VALUE:
      if (go8) begin
        push_value = 1'b1;
        take_bytes = body_take;
        e.vbeats = m.vbeats + 9'd1;
        if (body_ends) begin
          emit = 1'b1;
          if (m.vlen > 12'(VALUE_MAX)) begin
            e.op = OP_ERROR;
            e.err = ERR_TOOLARGE;
            e.quiet = 1'b0;
          end
        end
      end
      S_SKIP: take_bytes = body_take;
      default: ;
    endcase
    e.eod = is_last || stops;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= S_HEADER;
    end else begin
      case (state)
        S_HEADER: begin
          bin_key <= swap16(view[31:16]);
          bin_extras <= view[39:32];
          h_left <= left - 12'd24;
          short_header <= left < 12'd24;
          no_header <= view[7:0] != 8'h80;
          if (go8) state <= S_SIZES;
        end
        S_SIZES: begin
          bin_body <= swap32(view[31:0]);
          key_take <= bin_key[7:0] > 8'd8 ? 4'd8 : bin_key[3:0];
          key_ends <= bin_key[7:0] <= 8'd8;
          form <= h_form;
          form_op <= h_op;
          form_quiet <= h_quiet;
          form_key <= h_shows_key;
          form_touch <= h_touch;
          form_quit <= h_quit;
          if (quits) state <= S_HEADER;
          else if (go8) state <= S_CAS;
        end
        S_CAS: begin
          long_extras <= form == FORM_STORE || form == FORM_DELTA;
          m.op <= form_op;
          m.quiet <= form_quiet;
          m.ret_key <= form_key;
          m.touch <= form_touch;
          m.klen <= bin_key[7:0];
          m.kbeats <= '0;
          m.vbeats <= '0;
          m.vlen <= h_rest;
          body_left <= h_rest;
          no_value <= h_whole;
          b_valid <= h_valid;
          b_closes <= h_closes;
          b_error <= h_error;
          too_short <= h_short;
          is_last <= bin_body[31:12] != '0 || h_left <= bin_body[11:0];
          bare <= !h_valid || h_short || bin_body == 32'd0;
          no_body <= bin_body == 32'd0;
          if (go8) state <= bin_extras != 8'd0 ? S_EXTRAS : S_KEY;
        end
        S_EXTRAS, S_KEY: begin
          body_left <= body_starts;
          body_take <= body_starts > 12'd8 ? 4'd8 : body_starts[3:0];
          body_ends <= body_starts <= 12'd8;
          if (bare) begin
            if (emit) state <= stops || no_body || (b_valid && !too_short) ? S_HEADER : S_SKIP;
          end else if (go8 && state == S_EXTRAS) begin
            state <= form == FORM_FLUSH ? S_FLUSH : form == FORM_DELTA ? S_INITIAL : S_KEY;
          end else if (go8) begin
            m.kbeats <= m.kbeats + 6'd1;
            bin_key[7:0] <= bin_key[7:0] - 8'd8;
            key_take <= bin_key[7:0] > 8'd16 ? 4'd8 : bin_key[3:0] - 4'd8;
            key_ends <= bin_key[7:0] <= 8'd16;
            if (key_ends) state <= no_value ? S_HEADER : S_VALUE;
          end
        end
        S_FLUSH: if (room) state <= S_HEADER;
        S_INITIAL:
        if (go8) begin
          state <= S_UNTIL;
        end
        S_UNTIL:
        if (go8) begin
          state <= S_KEY;
        end
        S_VALUE:
        if (go8) begin
          m.vbeats <= m.vbeats + 9'd1;
          body_left <= body_left - 12'd8;
          body_take <= body_left > 12'd16 ? 4'd8 : body_left[3:0] - 4'd8;
          body_ends <= body_left <= 12'd16;
          if (body_ends) state <= S_HEADER;
        end
        S_SKIP:
        if (go8) begin
          body_left <= body_left - 12'd8;
          body_take <= body_left > 12'd16 ? 4'd8 : body_left[3:0] - 4'd8;
          body_ends <= body_left <= 12'd16;
          if (body_ends) state <= S_HEADER;
        end
        default: ;
      endcase
    end
  end

  // The operation's long fields: where one has no meaning it is anything, but what a text operation shows is zero.
  logic [31:0] time_at;
  assign time_at = form == FORM_STORE ? swap32(view[63:32]) : swap32(view[31:0]);
  always_ff @(posedge clk) begin
    m.bin <= 1'b1;
    m.err <= ERR_UNKNOWN;
    m.ret_cas <= 1'b0;
    m.last_key <= 1'b0;
    m.own_cas <= 1'b0;
    m.cas_cmp <= 1'b0;
    m.eod <= 1'b0;
    if (state == S_HEADER && !active) m.opcode <= '0;
    else if (state == S_HEADER) m.opcode <= view[15:8];
    if (state == S_HEADER) m.opaque <= '0;
    else if (state == S_SIZES) m.opaque <= view[63:32];
    if (state == S_CAS) m.cas <= swap64(view);
    if (state == S_HEADER) m.exptime <= '0;
    else if (state == S_EXTRAS || state == S_UNTIL) m.exptime <= time_at[31] ? 32'h7fff_ffff : time_at;
    if (state == S_EXTRAS) begin
      m.flags <= swap32(view[31:0]);
      m.delta <= swap64(view);
    end
    if (state == S_INITIAL) m.initial_value <= swap64(view);
    if (state == S_UNTIL) m.vivify <= view[31:0] != 32'hffff_ffff;
  end
endmodule
