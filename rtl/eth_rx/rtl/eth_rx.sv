// SPDX-License-Identifier: Apache-2.0
//
// Reads the Ethernet header, with up to two VLAN tags, and passes on what follows it, aligned to
// beats. A frame that ends inside its header, has a group address or another EtherType than IP's
// goes no further; `drop` says why.
//
// A header has 14, 18 or 22 bytes, so what follows it begins at byte 6 or 2 of a beat.
module eth_rx
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        in_valid,
    output logic        in_ready,
    input  logic [63:0] in_data,
    input  logic [3:0]  in_bytes,
    input  logic        in_last,
    input  logic        in_error,  // with in_last: the frame is damaged
    // One for each frame that is passed on; offered no later than its first beat.
    output logic        ctx_valid,
    input  logic        ctx_ready,
    output eth_ctx_t    ctx,
    output logic        ctx_v6,
    output logic        out_valid,
    input  logic        out_ready,
    output logic [63:0] out_data,
    output logic [3:0]  out_bytes,
    output logic        out_last,
    output logic        out_error,
    output logic        drop_not_for_us,
    output logic        drop_truncated,
    output logic        drop_unsupported,
    output logic        drop_may_change   // with a drop: whoever reads more of it may find requests
);
  // S_MAC sees beats 0 and 1, S_TAG and S_TAG2 beats 1 and 2, S_PASS the beat in which what is passed
  // on begins, and the next one.
  typedef enum logic [2:0] {S_MAC, S_TAG, S_TAG2, S_PASS, S_DROP} state_t;
  state_t state;

  // What two bytes are as an EtherType; found out when they come in.
  typedef struct packed {
    logic v4;
    logic v6;
    logic tag;
  } type_t;
  function automatic type_t type_of(logic [15:0] bytes);
    type_of.v4 = swap16(bytes) == 16'h0800;
    type_of.v6 = swap16(bytes) == 16'h86dd;
    type_of.tag = swap16(bytes) == 16'h8100 || swap16(bytes) == 16'h88a8;
  endfunction
  typedef struct packed {
    type_t at_0;
    type_t at_4;
    logic error;
    logic last;
    logic below_2;      // the last one, of less than 2 bytes
    logic below_6;
    logic to_2;         // of up to 2
    logic to_6;
    logic [3:0] bytes;
    logic [63:0] data;
  } beat_t;
  beat_t coming, first, second;
  logic first_valid, second_valid, take, take_both;
  assign coming = '{
      at_0: type_of(in_data[15:0]), at_4: type_of(in_data[47:32]), error: in_error, last: in_last,
      below_2: in_last && in_bytes < 4'd2, below_6: in_last && in_bytes < 4'd6, to_2: in_last && in_bytes <= 4'd2,
      to_6: in_last && in_bytes <= 4'd6, bytes: in_bytes,
      data: in_data & byte_mask(in_bytes)
  };
  two_beats #(.W($bits(beat_t))) beats (
      .clk, .rst, .in_valid, .in_ready, .in_data(coming), .first_valid, .first, .second_valid, .second, .take, .take_both
  );

  function automatic logic [47:0] mac_at(logic [47:0] bytes);
    mac_at = {bytes[7:0], bytes[15:8], bytes[23:16], bytes[31:24], bytes[39:32], bytes[47:40]};
  endfunction

  // --- The header.
  type_t kind;          // what follows it, or a tag
  logic ends_before;    // the frame has not all of the header, or of the tag
  logic ends_after;     // nothing is behind it
  logic reads;          // a part of the header is there
  always_comb begin
    kind = state == S_TAG ? second.at_0 : second.at_4;
    reads = second_valid && (state == S_MAC || state == S_TAG || state == S_TAG2);
    ends_before = state == S_TAG ? second.below_2 : second.below_6;
    ends_after = state == S_TAG ? second.to_2 : second.to_6;  // where there is no end before
    if (state == S_MAC && first.last) begin
      reads = first_valid;
      ends_before = 1'b1;
    end
  end
  logic group, next_tag, passes;
  assign group = state == S_MAC && (first.data[0] || first.data[48]);
  always_comb begin
    drop_not_for_us = 1'b0;
    drop_truncated = 1'b0;
    drop_unsupported = 1'b0;
    next_tag = 1'b0;
    passes = 1'b0;
    if (reads) begin
      if (ends_before) drop_truncated = 1'b1;
      else if (group) drop_not_for_us = 1'b1;
      else if (kind.tag && state == S_TAG2) drop_unsupported = 1'b1;
      else if (kind.tag)
        // The tag has two bytes more, and another type follows.
        if (state == S_MAC ? second.last : second.below_6) drop_truncated = 1'b1;
        else next_tag = 1'b1;
      else if (!kind.v4 && !kind.v6) drop_not_for_us = 1'b1;
      else if (ends_after) drop_truncated = 1'b1;
      else passes = 1'b1;
    end
  end
  assign drop_may_change = drop_unsupported || (drop_not_for_us && group && (kind.tag || kind.v4 || kind.v6));

  // --- What follows it.
  logic at_6;           // it begins at byte 6, not 2, of a beat
  logic ctx_waits;
  logic whole, closes;  // a beat of it is there; the second beat has its end
  assign whole = first.last || second_valid;
  assign closes = !first.last && (at_6 ? second.to_6 : second.to_2);
  assign ctx_valid = ctx_waits;
  assign out_valid = state == S_PASS && first_valid && whole && (!ctx_waits || ctx_ready);
  assign out_data = at_6 ? {first.last ? 48'd0 : second.data[47:0], first.data[63:48]}
                    : {first.last ? 16'd0 : second.data[15:0], first.data[63:16]};
  assign out_last = first.last || closes;
  assign out_bytes = first.last ? first.bytes - (at_6 ? 4'd6 : 4'd2) : closes ? second.bytes + (at_6 ? 4'd2 : 4'd6) : 4'd8;
  assign out_error = first.last ? first.error : second.error;

  // The beat with the last tag's type is still needed.
  assign take_both = state == S_PASS && closes && out_valid && out_ready;
  always_comb begin
    case (state)
      S_MAC: take = reads;
      // Not where another tag follows.
      S_TAG: take = second_valid && (!second.at_0.tag || second.below_6);
      S_TAG2: take = second_valid;
      S_PASS: take = out_valid && out_ready;
      default: take = first_valid;
    endcase
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= S_MAC;
      ctx_waits <= 1'b0;
      ctx <= '0;
      ctx_v6 <= 1'b0;
      at_6 <= 1'b0;
    end else begin
      if (ctx_ready) ctx_waits <= 1'b0;
      case (state)
        S_MAC, S_TAG, S_TAG2: begin
          if (state == S_MAC) begin
            ctx.dst_mac <= mac_at(first.data[47:0]);
            ctx.src_mac <= mac_at({second.data[31:0], first.data[63:48]});
            ctx.vlans <= {1'b0, next_tag};
            ctx.vlan0 <= next_tag ? swap32(second.data[63:32]) : '0;
            ctx.vlan1 <= '0;
          end else if (state == S_TAG && next_tag && reads) begin
            ctx.vlans <= 2'd2;
            ctx.vlan1 <= swap32(second.data[31:0]);
          end
          ctx_v6 <= kind.v6;
          at_6 <= state != S_TAG;
          if (passes) begin
            ctx_waits <= 1'b1;
            state <= S_PASS;
          end else if (next_tag) begin
            state <= state == S_MAC ? S_TAG : S_TAG2;
          end else if (reads) begin
            // A frame of one beat ends with it.
            state <= first.last ? S_MAC : S_DROP;
          end
        end
        default: if (take && (first.last || take_both)) state <= S_MAC;
      endcase
    end
  end
endmodule
